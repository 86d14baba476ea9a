"""A zygote rehearses the problem's initial program: no trace of it, and no harm if it is bad."""

import dataclasses

import pytest
from verdicts import evaluate

from engine.core import Problem
from engine.evaluation import EvaluatorPool

LEAVES_TRACES = """
import builtins
import linecache
import random
import sys

import numpy as np

print("rehearsed")
builtins.rehearsed = sys.rehearsed = np.rehearsed = True
np.random.seed(7)
random.seed(7)


def double(values, offset):
    return 2 * values, 4
"""

LOOKS_FOR_TRACES = """
import builtins
import linecache
import random
import sys

import numpy as np

found = [each for each in (builtins, sys, np) if hasattr(each, "rehearsed")]
assert not found, found
assert linecache.getline("<program>", 1) == "\\n"
assert np.random.get_state()[1].tolist() == np.random.RandomState(0).get_state()[1].tolist()
assert random.getstate() == random.Random(0).getstate()


def double(values, offset):
    return 2 * values, 4
"""


def test_a_rehearsal_leaves_no_trace(double: Problem) -> None:
    problem = dataclasses.replace(double, initial_program=f"# LEAVES\n{LEAVES_TRACES}")
    with EvaluatorPool(problem=problem, workers=1) as pool:
        for _ in range(2):
            evaluation = evaluate(pool, LOOKS_FOR_TRACES)
            assert evaluation.failure is None, evaluation
            assert evaluation.artifacts == {}


@pytest.mark.parametrize(
    "initial",
    [
        "while True: pass",
        "import os; os.abort()",
        "not a program",
        *(
            pytest.param(initial, marks=pytest.mark.slow)
            for initial in (
                "import os; os._exit(3)",
                "raise KeyboardInterrupt",
                "kept = bytearray(1 << 40)",
                "\ud800",
                "",
            )
        ),
    ],
)
def test_an_initial_program_that_fails_harms_no_other(patient: Problem, initial: str) -> None:
    problem = dataclasses.replace(patient, initial_program=initial)
    with EvaluatorPool(problem=problem, workers=1) as pool:
        for _ in range(2):
            evaluation = evaluate(pool, patient.initial_program)
            assert evaluation.score == 1.0, evaluation
