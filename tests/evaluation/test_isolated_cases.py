"""Cases in processes of their own: what a program saw in one is not there in the next."""

import dataclasses
from collections.abc import Iterator

import pytest

from engine.core import Failure, Problem
from engine.evaluation import EvaluatorPool


@pytest.fixture(scope="module")
def isolated(double: Problem) -> Iterator[EvaluatorPool]:
    with EvaluatorPool(problem=dataclasses.replace(double, isolate_cases=True), workers=1) as pool:
        yield pool


def test_the_initial_program_scores_the_same(isolated: EvaluatorPool, double: Problem) -> None:
    assert isolated.evaluate(double.initial_program).score == 1.0


def test_nothing_is_remembered(isolated: EvaluatorPool, pool: EvaluatorPool) -> None:
    text = (
        "seen = []\n"
        "def double(values, offset=0.0):\n"
        "    seen.append(values)\n"
        "    assert len(seen) == 1\n"
        "    return 2 * values, 4\n"
    )
    assert isolated.evaluate(text).score == 1.0
    assert pool.evaluate(text).failure is Failure.ERROR


def test_other_cases_are_not_within_reach(isolated: EvaluatorPool) -> None:
    text = (
        "import sys\n"
        "def double(values, offset=0.0):\n"
        "    frame, seen = sys._getframe().f_back, ''\n"
        "    while frame is not None:\n"
        "        seen += repr(frame.f_locals)\n"
        "        frame = frame.f_back\n"
        "    last = 'Observation' + '(ended' in seen\n"
        "    print([i for i in range(3) if f'double {i}' in seen], last)\n"
        "    return 2 * values, 4\n"
    )
    for _ in range(2):
        evaluation = isolated.evaluate(text)
        assert evaluation.artifacts["stdout"] == "[0] False\n[1] False\n"


def test_a_failure_in_a_later_case_fails_the_program(isolated: EvaluatorPool) -> None:
    text = "def double(values, offset):\n    return (2 * values if values[0] == 1 else 7), 4\n"
    evaluation = isolated.evaluate(text)
    assert evaluation.failure is Failure.OUTPUT
    assert evaluation.message.startswith("double 1: doubled has shape ()")


def test_the_time_limit_is_for_all_cases_together(isolated: EvaluatorPool) -> None:
    text = (
        "import time\ndef double(values, offset):\n    time.sleep(0.7)\n    return 2 * values, 4\n"
    )
    assert isolated.evaluate(text).failure is Failure.TIMEOUT
    assert isolated.evaluate(text.replace("0.7", "0.1")).score == 1.0
