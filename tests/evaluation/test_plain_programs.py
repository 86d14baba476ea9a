"""Programs without bad intentions: what works, and what a mistake is called."""

import dataclasses

import pytest
from hostile import Check, Hostile, table
from verdicts import evaluate

from engine.core import Failure, Problem
from engine.evaluation import EvaluatorPool


def test_a_valid_program_is_measured(pool: EvaluatorPool, double: Problem) -> None:
    evaluation = evaluate(pool, double.initial_program)
    assert evaluation.failure is None, evaluation
    assert evaluation.score == 1.0 and evaluation.metrics == {"score": 1.0, "error": 0.0}
    assert evaluation.message == "" and evaluation.artifacts == {}
    assert evaluation.seconds > 0
    assert 1 << 20 < evaluation.peak_bytes < 1 << 30


def test_libraries_can_be_used(double: Problem) -> None:
    text = """
import numba
import numpy as np
import torch
from scipy import optimize, signal

@numba.njit
def twice(values):
    return 2 * values

def double(values, offset):
    assert signal.medfilt(values).shape == (4,)
    assert optimize.linprog([1, 1], bounds=(1, 2)).fun == 2
    assert torch.ones(3).sum().item() == 3
    assert np.linalg.svd(np.ones((2, 2)))[1][0] > 1
    return twice(values), 4
"""
    limits = dataclasses.replace(double.limits, seconds=20.0)
    problem = dataclasses.replace(double, limits=limits, modules=("torch",))
    with EvaluatorPool(problem=problem, workers=1) as pool:
        evaluation = evaluate(pool, text)
    assert evaluation.score == 1.0, evaluation


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def double(values:\n    return 1", "line 1: SyntaxError: '(' was never closed"),
        ("x = 1\n\nx = foo", "line 3: NameError: name 'foo' is not defined"),
        ("", "the program defines no function 'double'"),
        ("double = 3", "the program defines no function 'double'"),
        ("def double():\n    return 1", "TypeError: double() got an unexpected keyword argument"),
        ("x = 1\0", "null bytes"),
        ("x = '\ud800'", "UnicodeEncodeError"),
        ("x = " + "(" * 5000 + ")" * 5000, "SyntaxError"),
        ("import no_such_module", "line 1: ModuleNotFoundError: No module named 'no_such_module'"),
        ("def double(values, offset):\n    return values[7]", "line 2: IndexError"),
    ],
)
def test_a_mistake_is_named(pool: EvaluatorPool, text: str, message: str) -> None:
    evaluation = evaluate(pool, text)
    assert (evaluation.score, evaluation.failure) == (None, Failure.ERROR)
    assert message in evaluation.message and "\n" not in evaluation.message


def test_a_long_program_is_run(pool: EvaluatorPool, double: Problem) -> None:
    assert evaluate(pool, double.initial_program + "#" * (4 << 20)).score == 1.0


def test_the_traceback_shows_the_programs_own_lines(pool: EvaluatorPool) -> None:
    text = "def helper():\n    return foo\ndef double(values, offset):\n    return helper()\n"
    evaluation = evaluate(pool, text)
    assert evaluation.message == "line 2: NameError: name 'foo' is not defined"
    trace = evaluation.artifacts["traceback"]
    assert "return helper()" in trace and "return foo" in trace
    assert "engine" not in trace


@table(
    Hostile(
        name="both streams",
        attempt="print('seen', '\\x1b[2J')\nprint('too', file=sys.stderr)",
        failure=None,
    )
)
def test_printed_output_is_an_artifact(attack: Check, hostile: Hostile) -> None:
    stdout = attack(hostile).artifacts["stdout"]
    assert stdout == 2 * "seen \N{REPLACEMENT CHARACTER}[2J\ntoo\n"


@pytest.mark.parametrize(
    ("count", "failure", "message"),
    [
        (98, Failure.REJECTED, "a count of 98 is not allowed"),
        (
            99,
            Failure.ERROR,
            "evaluator: ZeroDivisionError: a bug in the evaluator (evaluator.py:26)",
        ),
        (100, Failure.ERROR, "evaluator: the score is nan (evaluator.py:20)"),
    ],
)
def test_the_scorer_has_the_last_word(
    pool: EvaluatorPool, count: int, failure: Failure, message: str
) -> None:
    text = f"def double(values, offset):\n    return 2 * values, {count}\n"
    evaluation = evaluate(pool, text)
    assert (evaluation.failure, evaluation.message) == (failure, message)
