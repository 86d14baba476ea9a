"""Cases in processes of their own: each measured by itself, none knows of the others.

Does not cover: hostile attempts to reach another case (``test_hostile_interpreter``).
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import pytest
from verdicts import evaluate

from engine.core import SECONDS, Failure, Limits, Outputs, Problem, Stage
from engine.evaluation import EvaluatorPool


@pytest.fixture(scope="module")
def isolated(double: Problem) -> Iterator[EvaluatorPool]:
    """The problem with isolated cases and the seconds of each as metrics."""
    (whole,) = double.stages

    def score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
        seconds = [each[SECONDS] for each in outputs]
        assert all(each.shape == () and each.dtype == "float64" for each in seconds)
        first, second = map(float, seconds)
        return {**whole.score(outputs), "first": first, "second": second}

    stages = (dataclasses.replace(whole, score=score),)
    problem = dataclasses.replace(double, isolate_cases=True, stages=stages)
    with EvaluatorPool(problem=problem, workers=1) as pool:
        yield pool


def test_the_initial_program_scores_the_same(isolated: EvaluatorPool, double: Problem) -> None:
    assert evaluate(isolated, double.initial_program).score == 1.0


def test_nothing_is_remembered(isolated: EvaluatorPool, pool: EvaluatorPool) -> None:
    text = (
        "seen = []\n"
        "def double(values, offset=0.0):\n"
        "    seen.append(values)\n"
        "    assert len(seen) == 1\n"
        "    return 2 * values, 4\n"
    )
    assert evaluate(isolated, text).score == 1.0
    assert evaluate(pool, text).failure is Failure.ERROR


def test_a_failure_in_a_later_case_fails_the_program(isolated: EvaluatorPool) -> None:
    text = "def double(values, offset):\n    return (2 * values if values[0] == 1 else 7), 4\n"
    evaluation = evaluate(isolated, text)
    assert evaluation.failure is Failure.OUTPUT
    assert evaluation.message.startswith("double 1: doubled has shape ()")


def test_the_time_limit_is_for_all_cases_together(double: Problem) -> None:
    text = (
        "import time\ndef double(values, offset):\n    time.sleep(1.4)\n    return 2 * values, 4\n"
    )
    for seconds, failure in ((2, Failure.TIMEOUT), (20, None)):  # for two cases
        limits = Limits(seconds=seconds, memory_bytes=256 << 20)
        problem = dataclasses.replace(double, isolate_cases=True, limits=limits)
        with EvaluatorPool(problem=problem, workers=1) as pool:
            assert evaluate(pool, text).failure is failure


def test_the_first_failure_ends_the_program(isolated: EvaluatorPool) -> None:
    text = "def double(values, offset):\n    print(values[0])\n    raise ValueError('no')\n"
    evaluation = evaluate(isolated, text)
    assert (evaluation.failure, evaluation.message) == (Failure.ERROR, "line 3: ValueError: no")
    assert evaluation.artifacts["stdout"] == "1.0\n"


def test_a_process_that_dies_in_a_later_case_is_a_crash(isolated: EvaluatorPool) -> None:
    text = (
        "import os\ndef double(values, offset):\n"
        "    if values[0] != 1: os._exit(3)\n    return 2 * values, 4\n"
    )
    assert evaluate(isolated, text).failure is Failure.CRASH


def test_outputs_have_the_seconds_of_their_case(isolated: EvaluatorPool) -> None:
    """They are the sandbox's own: the program's clock has stopped."""
    text = """
import time
from time import sleep
for name in dir(time):
    if callable(getattr(time, name)): setattr(time, name, lambda *_: 0.0)
def double(values, offset):
    if values[0] == 1: sleep(0.2)
    return 2 * values, 4
"""
    evaluation = evaluate(isolated, text)
    assert evaluation.score == 1.0, evaluation
    first, second = (evaluation.metrics[name] for name in ("first", "second"))
    assert first >= 0.2 and second > 0
    assert evaluation.seconds == first + second


def test_without_isolation_there_are_no_seconds(double: Problem) -> None:
    seen: list[set[str]] = []

    def score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
        seen.extend(set(output) for output in outputs)
        return {"score": 1.0}

    stage = Stage(name="full", cases=double.cases, score=score)
    with EvaluatorPool(problem=dataclasses.replace(double, stages=(stage,)), workers=1) as pool:
        evaluate(pool, double.initial_program)
    assert seen == [{"doubled", "count"}] * 2


def test_a_stage_finds_no_other_stages_case(double: Problem) -> None:
    text = (
        "import gc, sys\ndef double(values, offset):\n"
        "    found = {each.name for each in gc.get_objects() if type(each).__name__ == 'Case'}\n"
        "    frame = sys._getframe()\n"
        "    while frame is not None:\n"
        "        found |= {n for n in names if n in repr(frame.f_locals)}\n"
        "        frame = frame.f_back\n"
        "    print(sorted(found))\n    return 2 * values, 4\n"
        "names = ['double ' + str(i) for i in range(2)]\n"
    )
    screen = Stage(name="cheap", cases=double.cases[1:], score=lambda _: {"score": 1.0})
    stages = (screen, *double.stages)
    problem = dataclasses.replace(double, isolate_cases=True, stages=stages)
    with EvaluatorPool(problem=problem, workers=1) as pool:
        assert evaluate(pool, text).artifacts["stdout"] == "['double 0']\n['double 1']\n"
