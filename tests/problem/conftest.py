"""A small problem in a folder: as it is, with neighbours, and with data of the user's."""

from __future__ import annotations

from pathlib import Path

import pytest
from halve import BESIDE, DECLARATION, EVALUATOR, WITH_DATA


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "halve"
    folder.mkdir()
    (folder / "problem.yaml").write_text(DECLARATION)
    (folder / "statement.md").write_text("\nHalve the number, ½ of it.\n\n", encoding="utf-8")
    (folder / "initial.py").write_text("def solve(x):\n    return x / 2\n")
    (folder / "evaluator.py").write_text(EVALUATOR)
    return folder


@pytest.fixture
def whole(folder: Path) -> Path:
    """A problem whose evaluator imports its neighbours."""
    (folder / "evaluator.py").write_text(BESIDE)
    (folder / "cases.py").write_text("NAME = 'one'\n" + EVALUATOR.replace('"one"', "NAME"))
    (folder / "parts").mkdir()
    (folder / "parts" / "scoring.py").write_text(
        "from ..cases import NAME\ndef score(outputs): return {'score': float(len(NAME))}\n"
    )
    return folder


@pytest.fixture
def reader(folder: Path) -> Path:
    """A problem that reads data of the user's."""
    (folder / "evaluator.py").write_text(WITH_DATA)
    return folder
