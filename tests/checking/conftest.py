"""The folder of the problem that is checked."""

from __future__ import annotations

from pathlib import Path

import pytest
from sorting import DECLARATION, EVALUATOR, HONEST, INITIAL, MakeProblem

from engine.core import Problem
from engine.problem import load_problem


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of an honest problem, whose initial program scores 3."""
    folder = tmp_path / "sorting"
    folder.mkdir()
    (folder / "problem.yaml").write_text(DECLARATION)
    (folder / "statement.md").write_text("Sort: `order(values)` returns them and a claim.\n")
    (folder / "initial.py").write_text(INITIAL)
    (folder / "evaluator.py").write_text(EVALUATOR.replace("SCORE", HONEST))
    return folder


@pytest.fixture
def several(folder: Path) -> Path:
    """That problem, with an initial program of two files."""
    (folder / "initial").mkdir()
    (folder / "initial" / "other.py").write_text("NUMBER = 3\n")
    (folder / "initial" / "solve.py").write_text(f"import other\nimport yaml\n{INITIAL}")
    (folder / "initial.py").unlink()
    (folder / "problem.yaml").write_text(DECLARATION.replace("order", "solve.order"))
    return folder


@pytest.fixture
def made(folder: Path) -> MakeProblem:
    """Return a function that writes other lines of a score, or other files, and loads that."""

    def make(score: str = HONEST, *, declared: str = "", **files: str) -> Problem:
        (folder / "evaluator.py").write_text(EVALUATOR.replace("SCORE", score))
        (folder / "problem.yaml").write_text(DECLARATION + declared)
        for name, text in files.items():
            path = folder / {"statement": "statement.md"}.get(name, f"{name}.py")
            path.write_text(text)
        return load_problem(folder)

    return make
