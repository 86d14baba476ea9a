"""The trusted code of a problem: neighbours, stages, the user's data, and bad ones."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from halve import BESIDE, EVALUATOR, refused

from engine.core import UserError
from engine.problem import load_problem


def test_two_problems_do_not_share_their_evaluators(folder: Path) -> None:
    other = folder.parent / "other"
    shutil.copytree(folder, other)
    (other / "evaluator.py").write_text(EVALUATOR.replace('"one"', '"two"'))
    first, second = load_problem(folder), load_problem(other)
    assert (first.cases[0].name, second.cases[0].name) == ("one", "two")


def test_an_evaluator_imports_its_neighbours(whole: Path) -> None:
    problem = load_problem(whole)
    assert problem.cases[0].name == "one"
    assert problem.score([]) == {"score": 3.0}


def test_neighbours_of_one_name_are_not_confused(whole: Path) -> None:
    path = list(sys.path)
    other = whole.parent / "other"
    shutil.copytree(whole, other)
    (other / "cases.py").write_text((whole / "cases.py").read_text().replace("'one'", "'other'"))
    first, second = load_problem(whole), load_problem(other)
    assert (first.cases[0].name, second.cases[0].name) == ("one", "other")
    assert (first.score([]), second.score([])) == ({"score": 3.0}, {"score": 5.0})
    assert sys.path == path
    assert "cases" not in sys.modules


def test_a_folder_loaded_again_is_what_it_is_by_then(whole: Path) -> None:
    load_problem(whole)
    (whole / "cases.py").write_text((whole / "cases.py").read_text().replace("'one'", "'new one'"))
    (whole / "evaluator.py").write_text(f"{BESIDE}from .late import *\n")
    (whole / "late.py").write_text("")
    assert load_problem(whole).cases[0].name == "new one"


def test_a_neighbour_imported_as_a_stranger_is_told_how(whole: Path) -> None:
    (whole / "evaluator.py").write_text("from cases import cases, score")
    assert "No module named 'cases'; import it as a neighbour, from .cases import" in refused(whole)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def score(outputs): ...", "has no function cases()"),
        ("cases = score = 3", "has no function cases()"),
        ("def cases(): return []", "has no function score()"),
        ("import no_such_module_at_all", "can't be imported: ModuleNotFoundError"),
        ("def cases(:", "can't be imported: SyntaxError"),
        ("raise ValueError('two\\nlines')", "can't be imported: ValueError: two lines"),
        ("def cases(): return []\ndef score(o): ...", "must return engine.core.Case"),
        ("def cases(): return [1]\ndef score(o): ...", "must return engine.core.Case"),
        ("def cases(): return None\ndef score(o): ...", "its cases can't be had: TypeError"),
        ("def cases(): 1 / 0\ndef score(o): ...", "its cases can't be had: ZeroDivisionError"),
    ],
)
def test_a_bad_evaluator(folder: Path, text: str, message: str) -> None:
    (folder / "evaluator.py").write_text(text)
    assert message in refused(folder)


def test_an_evaluator_that_can_not_be_imported_leaves_no_module(folder: Path) -> None:
    (folder / "evaluator.py").write_text("1 / 0")
    before = set(sys.modules)
    refused(folder)
    assert not {name for name in set(sys.modules) - before if name.startswith("brood_problem")}


SCREENS = (
    EVALUATOR
    + """
from engine.core import Stage

def screens():
    case = Case(name="tiny", args=(1.0,), outputs={"x": ArraySpec(shape=(range(1, 3),))})
    other = Stage(name="half", cases=(case, case), score=lambda outputs: {"score": 2.0})
    return [Stage(name="quick", cases=(case,), score=lambda outputs: {"score": 1.0}), other]
"""
)


def test_cheap_stages_stand_before_the_full_one(folder: Path) -> None:
    (folder / "evaluator.py").write_text(SCREENS)
    problem = load_problem(folder)
    assert [stage.name for stage in problem.stages] == ["quick", "half", "full"]
    assert [len(stage.cases) for stage in problem.stages] == [1, 2, 1]
    assert [stage.score([{"x": np.array(0.5)}]) for stage in problem.stages] == [
        {"score": 1.0},
        {"score": 2.0},
        {"score": 0.5},
    ]
    assert problem.cases == problem.stages[-1].cases
    assert problem.score([{"x": np.array(0.5)}]) == {"score": 0.5}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"half"', '"quick"', "two stages have one name"),
        ('"half"', '"full"', "two stages have one name; the last one's is 'full'"),
        ('"half"', '"cascade"', "has the name 'cascade'; it must be an identifier other than"),
        ('"half"', '"a.b"', "has the name 'a.b'; it must be an identifier"),
        ('"half"', '"a\\nb"', "it must be an identifier"),
        ('"half"', "3", "has the name 3; it must be an identifier"),
        ("(case, case)", "()", "must return engine.core.Case values, at least one"),
        ("(case, case)", "(case, 1)", "must return engine.core.Case values"),
        ('lambda outputs: {"score": 2.0}', "3", "stage half has no function for its score"),
        ("return [", "return [3, ", "screens() must return engine.core.Stage values"),
        ("return [", "1 / 0; return [", "its cases can't be had: ZeroDivisionError"),
        ("def screens():", "def screens(x):", "its cases can't be had: TypeError"),
        ("def screens():", "screens = 3\ndef other():", "its cases can't be had: TypeError"),
    ],
)
def test_bad_cheap_stages(folder: Path, old: str, new: str, message: str) -> None:
    assert old in SCREENS
    (folder / "evaluator.py").write_text(SCREENS.replace(old, new))
    assert message in refused(folder)


def test_data_of_the_users_or_its_own(reader: Path, tmp_path: Path) -> None:
    data = tmp_path / "factor.txt"
    data.write_text("5")
    outputs = [{"x": np.array(1.0)}]
    own, users = load_problem(reader), load_problem(reader, data=data)
    assert (own.score(outputs), users.score(outputs)) == ({"score": 2.0}, {"score": 5.0})
    assert [case.args for case in users.cases] == [(5.0,)]
    assert [stage.name for stage in users.stages] == ["quick", "full"]


def test_data_are_found_from_anywhere(
    reader: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "factor.txt").write_text("5")
    fingerprint = load_problem(reader, data=tmp_path / "mine").fingerprint
    monkeypatch.chdir(tmp_path / "mine")
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in ("factor.txt", "~/mine/factor.txt", "../mine", "."):
        assert load_problem(reader, data=Path(path)).fingerprint == fingerprint


def test_data_that_are_missing_or_bad(reader: Path, tmp_path: Path) -> None:
    data = tmp_path / "factor.txt"
    assert "does not exist; give data=PATH" in refused(reader, data)
    data.write_text("five")
    assert "holds no number; write one" in refused(reader, data)
    data.write_bytes(b"\xff")  # a UnicodeDecodeError is a ValueError
    assert "holds no number" in refused(reader, data)
    with pytest.raises(UserError, match=r"with_data\(\) failed: FileNotFoundError"):
        load_problem(reader, data=reader)  # a folder without the file
    data.write_text("-1")
    with pytest.raises(UserError, match=r"^the factor is negative; give one above 0$"):
        load_problem(reader, data=data)


def test_data_for_a_problem_that_reads_none(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "factor.txt"
    data.write_text("5")
    assert "problem halve reads no data; leave data=" in refused(folder, data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def with_data(path): return None", "has no function cases()"),
        ("def with_data(path): 1 / 0", "with_data() failed: ZeroDivisionError"),
        ("def with_data(): return None", "with_data() failed: TypeError"),
        ("with_data = 3", "with_data() failed: TypeError"),
        (
            "from engine.core import Limits\n"
            "def with_data(path): Limits(seconds=1, memory_bytes=1 << 60)",
            "ValueError: memory_bytes is 1152921504606846976; it must be above 0 and below",
        ),
    ],
)
def test_a_bad_reader_of_data(folder: Path, text: str, message: str) -> None:
    (folder / "evaluator.py").write_text(text)
    assert message in refused(folder)
