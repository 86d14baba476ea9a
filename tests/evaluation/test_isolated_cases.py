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
        "    frame, found = sys._getframe(), []\n"
        "    while frame is not None:\n"
        "        setup = frame.f_locals.get('setup')\n"
        "        found += [case.name for case in setup.cases] if setup else []\n"
        "        frame = frame.f_back\n"
        "    print(sorted(set(found)))\n"
        "    return 2 * values, 4\n"
    )
    evaluation = isolated.evaluate(text)
    assert evaluation.artifacts["stdout"] == "['double 0']\n['double 1']\n"


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
