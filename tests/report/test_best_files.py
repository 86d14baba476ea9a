"""The best program of a run is written as the files that it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.core import UserError
from engine.core.bundle import bundle_of
from engine.report.summary import write_program


def test_one_text_is_one_file(tmp_path: Path) -> None:
    write_program(tmp_path, "x = 1\n")
    assert [each.name for each in tmp_path.iterdir()] == ["best.py"]


def test_named_files_are_a_folder(tmp_path: Path) -> None:
    write_program(tmp_path, bundle_of({"a.py": "x = 1\n", "b/c.cpp": "#:file no\nint x;"}))
    assert (tmp_path / "best" / "a.py").read_text() == "x = 1\n"
    assert (tmp_path / "best" / "b" / "c.cpp").read_text() == "#:file no\nint x;"


def test_a_folder_that_can_not_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "best").write_text("")
    with pytest.raises(UserError, match="best can't be made"):
        write_program(tmp_path, bundle_of({"a.py": ""}))
