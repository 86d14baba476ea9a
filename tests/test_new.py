"""``python -m engine.new``: the folder of a new problem, whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import read_summary, run

from engine.core import UserError
from engine.new import main, new_problem
from engine.problem import FILES, load_problem


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_a_new_problem_loads_and_has_cheats(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mine"]) == 0
    problem = load_problem(here / "mine")
    assert (problem.name, problem.folder) == ("mine", here / "mine")
    assert {path.name for path in problem.folder.iterdir()} == {*FILES, "cheats"}
    assert len([*problem.folder.glob("cheats/*.py")]) >= 5
    said = capsys.readouterr().out
    assert "python -m engine.run problem.path=mine model=mutation" in said
    assert [path.name for path in here.iterdir()] == ["mine"]


def test_it_lies_where_it_is_asked_for(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "all my problems").mkdir()
    assert main(["mine-2", "in=all my problems"]) == 0
    load_problem(here / "all my problems" / "mine-2")
    assert "problem.path='all my problems/mine-2'" in capsys.readouterr().out


def test_it_improves_within_fifty_candidates(here: Path) -> None:
    assert main(["mine"]) == 0
    settings = ("problem.path=mine", "model=mutation", "budget.candidates=50", "name=first")
    done = run(*settings, scratch=here / "scratch", cwd=here)
    assert done.returncode == 0, done.stderr
    summary = read_summary(here / "runs" / "first")
    assert summary["best_score"] > summary["initial_score"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give one name"),
        (["one", "two"], "give one name"),
        (["a/b"], "'a/b' is no name for a problem"),
        ([".."], "'..' is no name"),
        ([""], "'' is no name"),
        (["1st"], "'1st' is no name"),
        (["päck"], "'päck' is no name"),
        (["n" * 65], "at most 64"),
        (["mine\n"], "is no name"),
        (["mine", "in=nowhere"], "folder nowhere does not exist; make it, or give another in="),
        (["mine", "in=file"], "folder file does not exist"),
        (["mine", "in=~nobody_such_user"], "folder '~nobody_such_user' can't be resolved"),
        (["mine", f"in={'x' * 300}"], "x can't be used: File name too long; give another path"),
        (["taken"], "taken exists already; give another name"),
        (["file"], "file exists already"),
        (["link"], "link exists already"),
        (["mine", "at=here"], "give one name"),
    ],
)
def test_bad_input(
    here: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "taken").mkdir()
    (here / "taken" / "mine.txt").write_text("kept")
    (here / "file").write_text("kept")
    (here / "link").symlink_to("nowhere")
    before = sorted(here.rglob("*"))
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err and err.count("\n") == 1
    assert sorted(here.rglob("*")) == before
    assert (here / "taken" / "mine.txt").read_text() == "kept"


def test_a_folder_that_appears_meanwhile_is_not_overwritten(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Late:
        """The template's folder, which somebody makes ours while it is read."""

        def rglob(self, pattern: str) -> list[Path]:
            (here / "mine").mkdir()
            (here / "mine" / "file").write_text("kept")
            return []

    monkeypatch.setattr("engine.new.TEMPLATE", Late())
    with pytest.raises(UserError, match="mine can't be made"):
        new_problem("mine", parent=here)
    assert [path.name for path in here.rglob("*")] == ["mine", "file"]


def test_a_failure_in_between_leaves_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "write_bytes", _full_disk)
    with pytest.raises(UserError, match=r"mine can.t be made: .*No space left"):
        new_problem("mine", parent=here)
    assert [*here.iterdir()] == []


def _full_disk(path: Path, data: bytes) -> int:
    raise OSError(28, "No space left on device")
