"""A short run, written by hand, whose figures can be worked out by hand.

Three calls in two sessions; the second call follows a guess that was given up, and the last one was
cut short. Each child has 7 tokens, 0.5 s of the engine and a prompt of 100 tokens, 80 of them
cached; each evaluation took 0.25 s. The guess cost 50 tokens, and 200 of prompts, 100 of them
cached. So a child costs 20 * 2 + 80 * 0.5 + 7 * 10 = 150 millionths, and the guess 750.

A program is a row of names, one a line; its syntax tree has 1 + 3 nodes a line.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from engine import config
from engine.core import (
    INITIAL,
    Advice,
    Consultation,
    Direction,
    Evaluation,
    Failure,
    Feature,
    Fill,
    Guidance,
    Migrant,
    Miss,
    Question,
    Refusal,
)
from engine.report.analysis import RunRecord, record_of
from engine.settings import RunSettings
from engine.store import Call, Child, Event, GivenUp, Recorded, Session, Verdict
from engine.syntax import read

PROGRAMS = {
    INITIAL: "a\nb\nc\nd\n",
    "0.0": "a\nb\nc\ne\n",
    "1.0": "a\nb\nc\ne\nf\n",
    "1.1": "x\n",
    "1.2": "a\n\nb\n\nc\ne",
    "2.0": "a\nb\nc\nd\ne\n",
    "3.0": "z\n",
    "4.0": "o\n",
}


@functools.cache
def settings_of(*arguments: str) -> RunSettings:
    prices = ("prompt=2", "cached_prompt=0.5", "generated=10")
    return config.resolve([*(f"budget.prices.{each}" for each in prices), *arguments])


def call(
    iteration: int, parent: str, operator: str, temperatures: tuple[float, ...], island: int = 0
) -> Call:
    return Call(
        iteration=iteration,
        island=island,
        parent=parent,
        rule="elite",
        operator=operator,
        k=len(temperatures),
        known=1000,  # all that stands before it
        guessed=False,
        prompt="",
        prompt_tokens=100,
        temperatures=temperatures,
        seeds=tuple(range(len(temperatures))),
    )


def child(name: str, parent: str, operator: str, refusal: Refusal | None = None) -> Child:
    iteration, index = map(int, name.split("."))
    return Child(
        id=name,
        iteration=iteration,
        index=index,
        parent=parent,
        operator=operator,
        completion="",
        completion_ids=tuple(range(7)),
        finish_reason="stop",
        program=read(PROGRAMS[name]) if name in PROGRAMS else None,
        refusal=refusal,
        prompt_tokens=100,
        cached_prompt_tokens=80,
        llm_seconds=0.5,
    )


def verdict(name: str, score: float | None) -> Verdict:
    failure = None if score is not None else Failure.ERROR
    program = PROGRAMS[INITIAL] if name == INITIAL else None
    return Verdict(
        candidate=name,
        evaluation=Evaluation(score=score, failure=failure, seconds=0.25),
        program=program,
    )


def fill(number: int, parent: str, maker: str, program: str) -> Fill:
    found = read(program)
    assert found is not None
    return Fill(
        number=number,
        maker=maker,
        parent=parent,
        island=1,
        sample=0,
        program=found,
        joins=True,
    )


GUESS = GivenUp(
    iteration=1,
    attempt=0,
    island=1,
    parent=INITIAL,
    generated_tokens=50,
    prompt_tokens=200,
    cached_prompt_tokens=100,
    llm_seconds=1.0,
)

FIRST_SESSION: tuple[Event, ...] = (
    Session(number=0, engine="0", fingerprint="f"),
    verdict(INITIAL, 0.5),
    call(0, INITIAL, "infill", (0.5, 1.0)),
    child("0.0", INITIAL, "infill"),
    child("0.1", INITIAL, "infill", Refusal.UNPARSED),
    verdict("0.0", 0.75),  # at 5 s
    GUESS,
    replace(call(1, "0.0", "diff", (0.5, 0.75, 1.0), island=1), rule="weighted"),
    child("1.0", "0.0", "diff"),
    child("1.1", "0.0", "diff"),
    child("1.2", "0.0", "diff"),
    verdict("1.0", 0.6),
    verdict("1.1", 0.9),  # at 12 s
    verdict("1.2", None),
)
SECOND_SESSION: tuple[Event, ...] = (
    Session(number=1, engine="0", fingerprint="f"),
    call(2, INITIAL, "infill", (0.5, 1.0)),
    child("2.0", INITIAL, "infill"),
    verdict("2.0", 0.55),  # at 3 s
)


def recorded() -> list[Recorded]:
    """Return the log: one event a second."""
    return [
        Recorded(session=number, elapsed=float(second), event=event)
        for number, session in enumerate((FIRST_SESSION, SECOND_SESSION))
        for second, event in enumerate(session)
    ]


def with_others() -> list[Recorded]:
    """Return the log with programs that no call made, and with children of theirs, at 17 to 26 s.

    A fill of 1.1 has 0.95 and a child of 0.96. A migrant has 0.97, its fill 0.98, whose child 0.99.
    """
    migrant = Migrant(number=0, origin=2, candidate="4.0", program=read("m\n"))
    events = [
        fill(0, "1.1", "mutation", "y\n"),
        verdict("f0", 0.95),
        call(3, "f0", "infill", (0.5,)),
        child("3.0", "f0", "infill"),
        verdict("3.0", 0.96),
        migrant,
        verdict(migrant.id, 0.97),
        fill(1, migrant.id, "tuning", "n\n"),
        verdict("f1", 0.98),
        call(4, "f1", "diff", (0.5,)),
        child("4.0", "f1", "diff"),
        verdict("4.0", 0.99),
    ]
    return recorded() + [
        Recorded(session=1, elapsed=4.0 + second, event=event)
        for second, event in enumerate(events)
    ]


def with_questions() -> list[Recorded]:
    """Return the log with what the model was asked before 0.0: for guidance, and by an advisor.

    The two have 3 and 4 tokens, 40 and 60 of prompts, 10 and 20 of them cached, 0.25 s each.
    """
    sampled: dict[str, Any] = {
        "answer": "",
        "finish_reason": "stop",
        "llm_seconds": 0.25,
        "temperature": 0.5,
    }
    rewrite = Guidance(
        child="0.0",
        of=None,
        text=None,
        answer_ids=(1, 2, 3),
        prompt_tokens=40,
        cached_prompt_tokens=10,
        missed={Miss.COLD: 30},
        **sampled,
    )
    consultation = Consultation(
        question=Question.IDEAS,
        answer_ids=(1, 2, 3, 4),
        prompt_tokens=60,
        cached_prompt_tokens=20,
        missed={Miss.COLD: 40},
        shared=0,
        **sampled,
    )
    advice = Advice(child="0.0", idea=None, experiment="", consultations=(consultation,))
    events = recorded()
    events[3:3] = [Recorded(session=0, elapsed=2.5, event=each) for each in (rewrite, advice)]
    return events


def changed(**fields: Mapping[str, object]) -> list[Recorded]:
    """Return the log with other values in some fields, by the field's name and the subject."""
    result = []
    for each in recorded():
        changes: dict[str, Any] = {
            name: values[each.event.subject]
            for name, values in fields.items()
            if hasattr(each.event, name) and each.event.subject in values
        }
        result.append(replace(each, event=replace(each.event, **changes)))
    return result


def hand_run(
    *arguments: str,
    name: str = "runs/a",
    direction: Direction = Direction.MAXIMISE,
    events: list[Recorded] | None = None,
    declared: Sequence[Feature] = (),
) -> RunRecord:
    """Return the run, or one with other events or settings."""
    return record_of(
        name=name,
        settings=settings_of(*arguments),
        direction=direction,
        events=recorded() if events is None else events,
        declared=declared,
    )
