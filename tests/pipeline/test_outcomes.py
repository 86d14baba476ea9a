"""What an iteration brought, read off the events: by hand, in order, and only once it is over."""

from __future__ import annotations

import dataclasses
from unittest.mock import create_autospec

import pytest

from engine.core import INITIAL, Direction, Evaluation, Failure, Refusal
from engine.pipeline import RunState
from engine.search.search import Search
from engine.search.widths import IterationOutcome
from engine.store import Call, Child, Event, Recorded, RunHistory, Verdict
from engine.syntax import read

IMPROVED = {(0, 0): 2}
"""What the search says of an island and its iteration."""


class Run:
    """A run's state, and the outcomes that its search is told."""

    def __init__(self, *events: Event, workers: int = 1) -> None:
        self._finished: list[IterationOutcome] = []
        search = create_autospec(Search, instance=True)
        search.improved.side_effect = lambda *which: IMPROVED.get(which, 0)
        search.finish.side_effect = self._finished.append
        history = RunHistory(direction=Direction.MAXIMISE)
        self._state = RunState(history=history, search=search, workers=workers)
        first = Evaluation(score=0.5, failure=None)
        self.fold(Verdict(candidate=INITIAL, evaluation=first, program="x = 1\n"))
        for event in events:
            self.fold(event)

    def fold(self, event: Event) -> None:
        self._state.fold(Recorded(session=0, elapsed=0.0, event=event))

    def finished(self) -> list[IterationOutcome]:
        """Return what has ended since the last time."""
        finished = [*self._finished]
        self._finished.clear()
        return finished

    def open_islands(self) -> set[int]:
        return {island for island in range(3) if self._state.is_open(island)}


def call(iteration: int, *, k: int, island: int = 0) -> Call:
    return Call(
        iteration=iteration,
        island=island,
        parent=INITIAL,
        rule="elite",
        operator="infill",
        k=k,
        known=0,
        guessed=False,
        prompt="",
        prompt_tokens=100,
        temperatures=(1.0,) * k,
        seeds=(0,) * k,
    )


def child(
    name: str, *, cached: int, generated: int, seconds: float, refusal: Refusal | None = None
) -> Child:
    iteration, index = map(int, name.split("."))
    return Child(
        id=name,
        iteration=iteration,
        index=index,
        parent=INITIAL,
        operator="infill",
        completion="",
        completion_ids=(1,) * generated,
        finish_reason="stop",
        program=read("x = 2\n"),
        refusal=refusal,
        prompt_tokens=100,
        cached_prompt_tokens=cached,
        llm_seconds=seconds,
    )


def verdict(name: str, score: float | None, seconds: float) -> Verdict:
    failure = Failure.ERROR if score is None else None
    return Verdict(
        candidate=name, evaluation=Evaluation(score=score, failure=failure, seconds=seconds)
    )


FIRST = (
    call(0, k=3),
    child("0.2", cached=0, generated=10, seconds=1.0),
    child("0.0", cached=90, generated=30, seconds=0.25),
    child("0.1", cached=80, generated=20, seconds=0.5, refusal=Refusal.UNPARSED),
    verdict("0.0", 0.75, 0.5),
    verdict("0.2", None, 1.5),
)
SECOND = (
    call(1, k=2),
    child("1.0", cached=100, generated=0, seconds=0.0, refusal=Refusal.DUPLICATE),
    child("1.1", cached=96, generated=5, seconds=2.0),
    verdict("1.1", 0.625, 1.0),
)


def test_an_outcome_is_what_its_events_add_up_to() -> None:
    assert Run(*FIRST, workers=2).finished() == [
        IterationOutcome(
            iteration=0,
            island=0,
            parent="initial",
            children=3,
            improved=2,  # as was said
            model_seconds=1.75,
            computed_tokens=100 + 10 + 20,
            repeated_tokens=10 + 20,
            decode_steps=30,
            generated_tokens=60,
            evaluation_seconds=(0.5 + 1.5) / 2,
        )
    ]


@pytest.mark.parametrize("missing", range(3, len(FIRST)))
def test_an_iteration_is_told_when_its_last_event_is_in(missing: int) -> None:
    run = Run(*FIRST[:missing], *FIRST[missing + 1 :], *SECOND)
    assert (run.finished(), run.open_islands()) == ([], {0})
    run.fold(FIRST[missing])
    assert [each.iteration for each in run.finished()] == [0, 1]
    assert (run.finished(), run.open_islands()) == ([], set())


def on_island(island: int, *events: Event) -> list[Event]:
    return [
        dataclasses.replace(event, island=island) if isinstance(event, Call) else event
        for event in events
    ]


def test_islands_are_told_as_they_end_each_in_its_own_order() -> None:
    third = (
        call(2, k=1, island=2),
        child("2.0", cached=0, generated=1, seconds=0.0, refusal=Refusal.UNPARSED),
    )
    # Both calls of island 2 come before the end of the one of island 0; the later one ends first.
    run = Run(*FIRST[:-1], *on_island(2, *SECOND[:-1]), *third)
    assert (run.finished(), run.open_islands()) == ([], {0, 2})
    run.fold(SECOND[-1])
    assert [(each.iteration, each.island) for each in run.finished()] == [(1, 2), (2, 2)]
    assert run.open_islands() == {0}
    run.fold(FIRST[-1])
    assert [(each.iteration, each.island) for each in run.finished()] == [(0, 0)]
    assert run.open_islands() == set()
