"""Recorded runs of ``signal`` whose calls and children a test makes up."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from births import born

from engine import config
from engine.core import (
    INITIAL,
    Call,
    Child,
    Direction,
    Evaluation,
    Event,
    Failure,
    Refusal,
    SampledFrom,
    Session,
    Verdict,
)
from engine.problem import load_problem
from engine.store import Recorded, RunHistory, create_run
from engine.syntax import read

Fate = tuple[str | None, Refusal | Failure | float | None]
"""Of a child: its program (None for none), and its refusal, its failure or its score."""
PARENT_SCORE = 0.5
FATES: Sequence[Fate] = (
    ("x = 1\n", 0.75),
    ("x = 1  # again\n", Refusal.DUPLICATE),
    ("x = 2\n", 0.25),
    ("x = 3\n", Failure.ERROR),
    (None, Refusal.UNPARSED),
    ("x = 4\n", Refusal.BUDGET),
)


def call_of(
    iteration: int, fates: Sequence[Fate] = FATES, *, learns: bool = True, adapter: int = 0
) -> list[Event]:
    """Return a call with its children and their verdicts."""
    k, events = len(fates), []
    call: Call | None = None
    for index, (text, fate) in enumerate(fates):
        program = None if text is None else read(text)
        child, call = born(
            id=f"{iteration}.{index}",
            program=program,
            iteration=iteration,
            index=index,
            operator="infill",
            answer=text or "nothing",
            answer_ids=(7, 8 + index, 9),
        )
        refusal = fate if isinstance(fate, Refusal) else None
        logprobs = (-0.5, -0.25 - index, -1.5) if learns else ()
        events.append(replace(child, refusal=refusal, logprobs=logprobs))
    assert call is not None
    source = SampledFrom(prompt_ids=(1, 2, iteration), banned=(5,), grammar='root ::= "x"')
    call = replace(
        call,
        k=k,
        prompt=f"prompt {iteration}: ",
        prompt_tokens=3,
        temperatures=tuple(0.5 + 0.125 * index for index in range(k)),
        seeds=tuple(range(k)),
        adapter=adapter,
        sampled_from=source if learns else None,
    )
    verdicts = [
        Verdict(
            candidate=f"{iteration}.{index}",
            evaluation=Evaluation(
                score=fate if isinstance(fate, float) else None,
                failure=fate if isinstance(fate, Failure) else None,
            ),
        )
        for index, (_, fate) in enumerate(fates)
        if isinstance(fate, float | Failure)
    ]
    return [call, *events, *verdicts]


def first_events(fingerprint: str = "f", program: str = "x = 0\n") -> list[Event]:
    """Return a run's beginning."""
    evaluation = Evaluation(score=PARENT_SCORE, failure=None)
    return [
        Session(number=0, engine="0", fingerprint=fingerprint),
        Verdict(candidate=INITIAL, evaluation=evaluation, program=program),
    ]


def history_of(events: Sequence[Event], direction: Direction) -> RunHistory:
    """Return what a run's beginning and events add up to."""
    history = RunHistory(direction=direction)
    for event in [*first_events(), *events]:
        history.fold(Recorded(session=0, elapsed=0.0, event=event))
    return history


def make_run(folder: Path, events: Sequence[Event], *arguments: str) -> Path:
    """Write a run's folder."""
    settings = config.resolve(["problem=signal", *arguments])
    problem = load_problem(Path(settings.problem))
    create_run(
        folder,
        write_config=lambda path: config.save(settings, path),
        events=[*first_events(problem.fingerprint, problem.initial_program), *events],
    )
    return folder


def child_in(events: Sequence[Event], name: str) -> Child:
    """Return a child by its id."""
    return next(each for each in events if isinstance(each, Child) and each.id == name)
