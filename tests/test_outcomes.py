"""What an iteration brought, read off the events: by hand, in order, and only once it is over."""

from __future__ import annotations

import dataclasses

import pytest

from engine.core import INITIAL, Direction, Evaluation, Failure, Refusal
from engine.outcomes import Outcomes
from engine.search import IterationOutcome
from engine.store import Call, Child, Event, Recorded, RunHistory, Verdict


def history_of(*events: Event, direction: Direction = Direction.MAXIMISE) -> RunHistory:
    history = RunHistory(direction=direction)
    first = Evaluation(score=0.5, failure=None)
    for event in (Verdict.of(INITIAL, first, program="x = 1\n"), *events):
        history.fold(Recorded(session=0, elapsed=0.0, event=event))
    return history


def call(iteration: int, *, k: int) -> Call:
    return Call(
        iteration=iteration,
        parent=INITIAL,
        operator="infill",
        k=k,
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
    assert list(Outcomes(history_of(*FIRST), workers=2).finished()) == [
        IterationOutcome(
            iteration=0,
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
    both = list(Outcomes(history_of(*FIRST, *SECOND), workers=1).finished())
    assert [each.improved for each in both] == [1, 0]  # 0.625 is no better than 0.75
    siblings = [
        dataclasses.replace(event, score=score) if isinstance(event, Verdict) else event
        for event, score in zip(FIRST, (0, 0, 0, 0, 0.75, 0.625), strict=True)
    ]
    (outcome,) = Outcomes(history_of(*siblings), workers=1).finished()
    assert outcome.improved == 2  # each is compared with what was there before both
    down = list(Outcomes(history_of(*FIRST, direction=Direction.MINIMISE), workers=1).finished())
    assert down[0].improved == 0


@pytest.mark.parametrize("missing", range(1, len(FIRST)))
def test_an_iteration_is_told_when_its_last_event_is_in(missing: int) -> None:
    history = history_of(*FIRST[:missing], *FIRST[missing + 1 :], *SECOND)
    outcomes = Outcomes(history, workers=1)
    assert list(outcomes.finished()) == []
    history.fold(Recorded(session=0, elapsed=0.0, event=FIRST[missing]))
    assert [each.iteration for each in outcomes.finished()] == [0, 1]
    assert list(outcomes.finished()) == []
