"""What an iteration brought, read off the events: by hand, in order, and only once it is over."""

from __future__ import annotations

import dataclasses

import pytest

from engine.core import INITIAL, Direction, Evaluation, Failure, Refusal
from engine.pipeline.outcomes import Outcomes
from engine.search import IterationOutcome
from engine.store import Call, Child, Event, Recorded, RunHistory, Verdict


class Run:
    """A history and the outcomes that are read off it."""

    def __init__(
        self, *events: Event, workers: int = 1, direction: Direction = Direction.MAXIMISE
    ) -> None:
        self._history = RunHistory(direction=direction)
        self._outcomes = Outcomes(
            self._history, workers=workers, first_best=[0.5, 0.5, None].__getitem__
        )
        first = Evaluation(score=0.5, failure=None)
        self.fold(Verdict.of(INITIAL, first, program="x = 1\n"))
        for event in events:
            self.fold(event)

    def fold(self, event: Event) -> None:
        self._history.fold(Recorded(session=0, elapsed=0.0, event=event))
        if isinstance(event, Call):
            self._outcomes.begin(event)

    def finished(self) -> list[IterationOutcome]:
        return list(self._outcomes.finished())

    def open_islands(self) -> set[int]:
        return {island for island in range(3) if self._outcomes.is_open(island)}


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
        program="x = 2\n",
        refusal=refusal,
        prompt_tokens=100,
        cached_prompt_tokens=cached,
        llm_seconds=seconds,
    )


def verdict(name: str, score: float | None, seconds: float) -> Verdict:
    failure = Failure.ERROR if score is None else None
    return Verdict.of(name, Evaluation(score=score, failure=failure, seconds=seconds))


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
            improved=1,  # 0.75, after 0.5
            model_seconds=1.75,
            computed_tokens=100 + 10 + 20,
            repeated_tokens=10 + 20,
            decode_steps=30,
            generated_tokens=60,
            evaluation_seconds=(0.5 + 1.5) / 2,
        )
    ]


def test_better_is_better_than_all_before_the_iteration() -> None:
    assert improved(*FIRST, *SECOND) == [1, 0]  # 0.625 is no better than 0.75
    siblings = [
        dataclasses.replace(event, score=score) if isinstance(event, Verdict) else event
        for event, score in zip(FIRST, (0, 0, 0, 0, 0.75, 0.625), strict=True)
    ]
    assert improved(*siblings) == [2]  # each is compared with what was there before both
    down = Run(*FIRST, direction=Direction.MINIMISE).finished()
    assert down[0].improved == 0


def improved(*events: Event) -> list[int]:
    return [each.improved for each in Run(*events).finished()]


@pytest.mark.parametrize("missing", range(1, len(FIRST)))
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


def test_an_island_that_began_with_nothing_improves_with_its_first_score() -> None:
    below = dataclasses.replace(FIRST[4], score=0.25)
    events = (*FIRST[:4], below, FIRST[5])
    assert improved(*events) == [0]  # no better than 0.5
    assert improved(*on_island(2, *events)) == [1]


def test_each_island_has_a_best_of_its_own() -> None:
    run = Run(*FIRST)
    assert [each.improved for each in run.finished()] == [1]
    for event in on_island(1, *SECOND):
        run.fold(event)
    # 0.625 is no better than 0.75, but that is island 0's.
    assert [each.improved for each in run.finished()] == [1]
