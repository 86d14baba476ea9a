"""Loading a problem: good folders, and every way in which one can be incomplete."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from halve import refused

from engine.core import Direction, KnownScore
from engine.problem import FILES, load_problem, shipped


def test_a_good_folder(folder: Path) -> None:
    problem = load_problem(folder)
    assert (problem.name, problem.folder) == ("halve", folder)
    assert problem.direction is Direction.MINIMISE
    assert problem.statement == "Halve the number, ½ of it."
    assert problem.initial_program == (folder / "initial.py").read_text()
    assert problem.entry_point == "solve"
    assert [case.name for case in problem.cases] == ["one"]
    assert problem.isolate_cases
    assert (problem.limits.seconds, problem.limits.memory_bytes) == (0.5, 64 << 20)
    assert problem.known_scores == (KnownScore(score=1.5, source="a paper"),)
    assert problem.score([{"x": np.array(0.25)}]) == {"score": 0.25}


def test_the_initial_program_is_not_run(folder: Path) -> None:
    text = "raise SystemExit('ran')\ndef solve(x): ...\n"
    (folder / "initial.py").write_text(text)
    assert load_problem(folder).initial_program == text


def test_a_home_folder_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    assert load_problem(Path("~/halve")).folder == folder


def test_the_shipped_problems_load() -> None:
    assert {"signal", "signal_causal"} <= set(shipped())
    for name, folder in shipped().items():
        assert load_problem(folder).name == name


def test_no_such_folder(tmp_path: Path) -> None:
    assert "does not exist" in refused(tmp_path / "none")


def test_a_path_that_leads_nowhere(folder: Path, reader: Path) -> None:
    (folder.parent / "circle").symlink_to("circle")
    nobodys = Path("~nobody_such_user/x")
    assert "can't be resolved" in refused(nobodys)
    assert "can't be resolved" in refused(folder.parent / "circle")
    assert "can't be resolved" in refused(reader, nobodys)


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "does not exist" in refused(tmp_path / "file")


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert f"has no {name};" in refused(folder)


@pytest.mark.parametrize("name", ["problem.yaml", "statement.md", "initial.py"])
def test_a_file_that_is_not_text(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"\xff\xfe\x00")
    assert f"{name} can't be read as UTF-8" in refused(folder)


@pytest.mark.parametrize("text", ["def solve(x:\n", "x = 1\0"])
def test_an_initial_program_that_does_not_parse(folder: Path, text: str) -> None:
    (folder / "initial.py").write_text(text)
    assert "it does not parse" in refused(folder)
