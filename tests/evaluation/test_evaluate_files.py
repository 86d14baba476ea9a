"""``python -m engine.evaluate`` on programs of several files."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.core import UserError
from engine.problem import load_problem, read_program, shipped

TOUR = shipped()["tour"]
INITIAL = load_problem(TOUR).initial_program


def test_a_folder_is_a_program() -> None:
    assert read_program(TOUR / "initial", initial_program=INITIAL) == INITIAL


def test_the_text_of_a_bundle_is_a_program(tmp_path: Path) -> None:
    (tmp_path / "best.txt").write_text(INITIAL)
    assert read_program(tmp_path / "best.txt", initial_program=INITIAL) == INITIAL


def test_the_only_file_of_a_program_needs_no_folder() -> None:
    folder = shipped()["matrix_product"]
    initial = load_problem(folder).initial_program
    kernel = folder / "initial" / "kernel.cpp"
    assert read_program(kernel, initial_program=initial) == initial


def test_one_file_of_several_is_no_program(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"start.py is one file, and .*improve.py, solve.py, start"):
        read_program(TOUR / "initial" / "start.py", initial_program=INITIAL)


def test_a_name_that_no_file_may_have(tmp_path: Path) -> None:
    (tmp_path / "a b.py").write_text("")
    with pytest.raises(UserError, match=r"'a b\.py' is no name"):
        read_program(tmp_path, initial_program=INITIAL)


def test_a_program_of_files_is_scored(capsys: pytest.CaptureFixture[str]) -> None:
    from engine.evaluate import main

    assert main(["problem=tour", f"program={TOUR / 'initial'}"]) == 0
    assert "score      0.778" in capsys.readouterr().out
