"""A zygote that is warm for one program alone: what it leaves out, and the same verdicts."""

import dataclasses

import pytest
from verdicts import evaluate

from engine.core import Evaluation, Failure, Problem
from engine.evaluation import EvaluatorPool
from engine.evaluation.warmth import WARM_MODULES, warmth_for_all, warmth_for_one


@pytest.mark.parametrize(
    ("program", "modules", "lazy"),
    [
        ("x = 1", [], []),
        ("import numba\n@numba.njit\ndef f(x): return x", ["numba"], []),
        ("from numba import njit", ["numba"], []),
        ("from scipy import signal\nsignal.medfilt", ["scipy.signal"], []),
        ("import scipy.signal as s\ns.medfilt", ["scipy.signal"], []),
        ("import scipy\nscipy.signal.medfilt", ["scipy.signal"], []),
        ("from scipy.signal import medfilt", ["scipy.signal"], []),
        ("__import__('scipy.signal')", ["scipy.signal"], []),
        ("from scipy import ndimage, signal", [], ["scipy.ndimage", "scipy.signal"]),
        ("from scipy import ndimage, signal\nsignal", ["scipy.signal"], ["scipy.ndimage"]),
        ("import scipy.signal\n'about a signal'", [], ["scipy.signal"]),
        ("import torch\ntorch.ones", ["torch"], []),
        ("from scipy import (signal", [], ["scipy.signal"]),
        ("'scipy.signal'\0", [], ["scipy.signal"]),
    ],
)
def test_it_has_what_the_program_uses(
    double: Problem, program: str, modules: list[str], lazy: list[str]
) -> None:
    problem = dataclasses.replace(double, modules=("torch",))
    warmth = warmth_for_one(problem, program)
    assert list(warmth.modules) == modules
    assert [name for name in warmth.lazy if name not in modules] == lazy
    assert warmth.rehearsal == ""


def test_what_a_used_package_imports_late_is_there(double: Problem) -> None:
    problem = dataclasses.replace(double, modules=("torch", "torch._dynamo"))
    assert warmth_for_one(problem, "import torch\ntorch.ones").modules == problem.modules
    assert warmth_for_one(problem, "x = 1").modules == ()


def test_it_has_all_for_many_programs_and_where_time_may_count(double: Problem) -> None:
    problem = dataclasses.replace(double, modules=("torch",), isolate_cases=True)
    everything = warmth_for_all(problem)
    assert everything.modules == (*WARM_MODULES, "torch")
    assert everything.rehearsal == double.initial_program
    assert warmth_for_one(problem, "x = 1") == everything


@pytest.fixture
def patient(double: Problem) -> Problem:
    """The same with a minute, for imports on a busy machine."""
    return dataclasses.replace(double, limits=dataclasses.replace(double.limits, seconds=60.0))


def verdict(problem: Problem, program: str) -> Evaluation:
    with EvaluatorPool(problem=problem, workers=1, only=program) as pool:
        return evaluate(pool, program)


HEAD = "import random\nimport sys\nimport numpy as np\nfrom scipy import ndimage, signal\n"
TAIL = "\ndef double(values, offset):\n    return 2 * values, 4\n"


@pytest.mark.parametrize(
    "check",
    [
        "assert signal.medfilt(np.ones(4)).shape == (4,)",
        "assert eval('sig' + 'nal.medfilt')(np.ones(4)).shape == (4,)",  # which no text shows
        "import scipy.stats\nassert scipy.stats.norm.cdf(0) == 0.5",
        "import scipy as s\nassert getattr(s, 'sta' + 'ts').norm.cdf(0) == 0.5",
        "import numba\nassert numba.njit(lambda x: x + 1)(1) == 2",
        "assert np.random.random() == np.random.RandomState(0).random()",
        "assert random.getstate() == random.Random(0).getstate()",
    ],
)
def test_the_program_finds_what_it_finds_in_a_run(patient: Problem, check: str) -> None:
    found = verdict(patient, f"{HEAD}{check}{TAIL}")
    assert found.score == 1.0, found


def test_an_import_that_nothing_uses_loads_nothing(patient: Problem) -> None:
    found = verdict(patient, f"{HEAD}assert 'scipy.st' + 'ats' not in sys.modules{TAIL}")
    assert found.score == 1.0, found


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("def double(values", Failure.ERROR),
        ("def double(values, offset): return 1 / 0", Failure.ERROR),
        ("def double(values, offset): return 3", Failure.OUTPUT),
        ("import os\ndef double(values, offset): os._exit(3)", Failure.CRASH),
        ("\ud800", Failure.ERROR),
    ],
)
def test_a_failure_is_the_same(double: Problem, program: str, failure: Failure) -> None:
    found = verdict(double, program)
    with EvaluatorPool(problem=double, workers=1) as pool:
        usual = evaluate(pool, program)
    assert (found.failure, found.message) == (usual.failure, usual.message)
    assert found.failure is failure
