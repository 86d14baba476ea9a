"""Evaluators that run programs where a core is idle: they wait for it, and time that core alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from verdicts import evaluate

from engine.core import ArraySpec, Case, Failure, Outputs, Problem
from engine.evaluation import EvaluatorPool
from engine.evaluation import pool as evaluation_pool

START = "import time\n\n\ndef run():\n    return 1.0\n"


def cases() -> Sequence[Case]:
    return [Case(name="one", args=(), outputs={"value": ArraySpec(shape=())})]


def score(outputs: Sequence[Outputs]) -> dict[str, float]:
    return {"score": float(outputs[0]["value"])}


@contextmanager
def open_patient(seconds: float, patience: int = 2400) -> Iterator[EvaluatorPool]:
    """Start one that is patient: other tests may leave its core idle for moments only."""
    problem = Problem.of("one", cases=cases, score=score, initial_program=START, seconds=seconds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation_pool, "IDLE_PATIENCE", patience)
        with EvaluatorPool(problem=problem, workers=1, idle=True) as opened:
            yield opened


@pytest.fixture(scope="module")
def pool() -> Iterator[EvaluatorPool]:
    with open_patient(seconds=0.5) as opened:
        yield opened


def test_a_program_is_scored(pool: EvaluatorPool) -> None:
    assert evaluate(pool, START).score == 1.0


def test_what_waits_for_its_core_is_not_late(pool: EvaluatorPool) -> None:
    waits = START.replace("return", "time.sleep(1.0)\n    return")
    assert evaluate(pool, waits).score == 1.0


def test_what_never_ends_is_killed_and_the_next_program_runs(
    pool: EvaluatorPool,
) -> None:
    evaluation = evaluate(pool, START.replace("return 1.0", "while True:\n        pass"))
    assert evaluation.score is None
    assert (evaluation.failure, evaluation.message) in (
        (Failure.TIMEOUT, "took more than the limit of 0.5 s of its core"),
        (Failure.STARVED, "its core was too seldom idle for 0.5 s of it"),
    )
    assert evaluate(pool, START).score == 1.0


def test_the_clock_says_nothing_about_a_program() -> None:
    """One that sleeps has no more of its core than one whose core is never idle."""
    with open_patient(seconds=0.5, patience=2) as pool:
        found = evaluate(pool, START.replace("return", "time.sleep(60)\n    return"))
    assert found.score is None and found.failure is Failure.STARVED


def test_it_has_the_whole_of_its_last_second() -> None:
    asks = "print(resource.getrlimit(resource.RLIMIT_CPU))\n    return"
    with open_patient(seconds=1.9) as pool:
        found = evaluate(pool, f"import resource\n{START.replace('return', asks)}")
    assert found.artifacts["stdout"] == "(2, 3)\n"
