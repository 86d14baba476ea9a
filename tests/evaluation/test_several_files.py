"""A program of several files runs behind the same walls: its files import each other."""

import dataclasses
from collections.abc import Iterator

import pytest
from verdicts import evaluate

from engine.core import Failure, Problem
from engine.core.bundle import bundle_of
from engine.evaluation import EvaluatorPool

FILES = {
    "solve.py": "from parts.twice import twice\nimport offsets\n"
    "def double(values, offset):\n    return twice(values), offsets.ONE + offset\n",
    "parts/twice.py": "from . import factor\n"
    "def twice(values):\n    return factor.VALUE * values\n",
    "parts/factor.py": "VALUE = 2\n",
    "offsets/__init__.py": "from offsets.one import ONE\n",
    "offsets/one.py": "ONE = 1\n",
}


@pytest.fixture(scope="module")
def files_pool(patient: Problem) -> Iterator[EvaluatorPool]:
    problem = dataclasses.replace(
        patient, entry_point="solve.double", initial_program=bundle_of(FILES)
    )
    with EvaluatorPool(problem=problem, workers=1) as pool:
        yield pool


def test_files_import_each_other(files_pool: EvaluatorPool) -> None:
    evaluation = evaluate(files_pool, bundle_of(FILES))
    assert evaluation.score == 1.0, evaluation


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("parts/factor.py", "VALUE = 2\n\nx = foo\n", "parts/factor.py line 3: NameError"),
        ("parts/twice.py", "def twice(:\n", "parts/twice.py line 1: SyntaxError"),
        ("parts/twice.py", "def twice(values):\n    return values[7]\n", "line 2: IndexError"),
        ("solve.py", "import gone\n", "solve.py line 1: ModuleNotFoundError"),
        ("solve.py", "x = 1\n", "the program defines no function 'solve.double'"),
    ],
)
def test_a_mistake_is_said_with_its_file(
    files_pool: EvaluatorPool, name: str, text: str, message: str
) -> None:
    evaluation = evaluate(files_pool, bundle_of({**FILES, name: text}))
    assert evaluation.failure is Failure.ERROR
    assert message in evaluation.message, evaluation


def test_no_file_outlives_its_program(files_pool: EvaluatorPool) -> None:
    extra = bundle_of({**FILES, "numpy_like.py": "x = 1\n"})
    assert evaluate(files_pool, extra).score == 1.0
    asks = {**FILES, "solve.py": "import numpy_like\n" + FILES["solve.py"]}
    assert "ModuleNotFoundError" in evaluate(files_pool, bundle_of(asks)).message


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.open('/tmp/x', os.O_CREAT | os.O_WRONLY)\n",
        "open('/etc/passwd').read()\n",
        "import socket\nsocket.socket()\n",
        "import sys\nsys.meta_path.clear()\nimport offsets\n",
        "raise SystemExit\n",
    ],
)
def test_the_walls_stand_for_every_file(files_pool: EvaluatorPool, text: str) -> None:
    evaluation = evaluate(files_pool, bundle_of({**FILES, "parts/factor.py": text + "VALUE = 2\n"}))
    assert evaluation.score is None
    assert evaluation.failure in (Failure.ERROR, Failure.CRASH), evaluation
    assert evaluate(files_pool, bundle_of(FILES)).score == 1.0


def test_a_text_that_is_no_bundle(files_pool: EvaluatorPool) -> None:
    assert evaluate(files_pool, "def double(values, offset):\n    pass\n").failure is Failure.ERROR
    evaluation = evaluate(files_pool, "#:file ../x.py\nx = 1\n")
    assert evaluation.failure is Failure.ERROR, evaluation
