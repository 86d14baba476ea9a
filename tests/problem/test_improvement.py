"""What a problem has to be for its programs to improve solutions."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engine.core import Improvement, UserError
from engine.problem import load_problem, shipped


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(shipped()["circle_packing"], tmp_path / "circles"))


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_problem_declares_what_a_solution_is(folder: Path) -> None:
    contract = load_problem(folder).improvement
    assert contract == Improvement(solution=("centers", "radii"), effort=1000)


def test_most_problems_declare_nothing() -> None:
    assert load_problem(shipped()["signal"]).improvement is None


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (
            "problem.yaml",
            "[centers, radii]",
            "[radii]",
            "the case's first outputs are ['centers']",
        ),
        ("problem.yaml", "[centers, radii]", "[]", "it must be a list of names of outputs"),
        ("problem.yaml", "effort: 1000", "effort: 0", "it must be a whole number above 0"),
        ("problem.yaml", ", effort: 1000", "", "it must be {solution: [NAMES OF OUTPUTS]"),
        ("initial.py", "def perturb(", "def shaken(", "defines no function 'perturb'"),
        ("initial.py", "def improve(", "def improved(", "defines no function 'improve'"),
        (
            "initial.py",
            "import numpy as np\n",
            "# EVOLVE-BLOCK-START\nimport numpy as np\n# EVOLVE-BLOCK-END\n",
            "evolve blocks",
        ),
        ("evaluator.py", "args=()", "args=(1.0,)", "only a solution that depends on no input"),
    ],
)
def test_what_does_not_fit_is_said_with_its_place(
    folder: Path, file: str, old: str, new: str, said: str
) -> None:
    change(folder / file, old, new)
    with pytest.raises(UserError) as error:
        load_problem(folder)
    assert said in str(error.value)
    assert str(folder) in str(error.value)
    assert "\n" not in str(error.value)
