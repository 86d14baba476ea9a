"""Pools as they come: broken and hostile files beside good ones, and other runs' folders."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from engine import syntax
from engine.core import INITIAL, Direction, Problem, Program, UserError
from engine.pool import PoolReading, read_pool, runs
from engine.pool.reading import MAX_BYTES
from engine.problem import load_problem

MakeRun = Callable[..., Path]
DOUBLE = Path(__file__).parents[1] / "evaluation" / "problems" / "double"
GOOD = """\
def double(values, offset=0.0):
    return {"doubled": 2 * values + offset, "count": len(values)}
"""


@pytest.fixture(scope="module")
def double() -> Problem:
    return load_problem(DOUBLE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "pool"
    made.mkdir()
    return made


def read(problem: Problem, *sources: Path, most_of_run: int = 10) -> PoolReading:
    return read_pool(sources, problem=problem, most_of_run=most_of_run)


def variant(number: int) -> str:
    return GOOD.replace("2 *", f"{number} *")


def test_programs_are_read_in_the_order_of_their_names(folder: Path, double: Problem) -> None:
    for name in ("b", "a", "c"):
        (folder / f"{name}.py").write_text(variant(ord(name)))
    (folder / "notes.txt").write_text("def double(: no program\n")
    (folder / "index.json").write_text("{}")
    found = read(double, folder)
    assert [(name, program.text) for name, program in found.programs.items()] == [
        (f"pool/{name}.py", variant(ord(name))) for name in "abc"
    ]
    assert found.unusable == {}


def test_each_broken_file_is_reported_and_the_rest_is_read(folder: Path, double: Problem) -> None:
    (folder.parent / "secret.py").write_text(variant(3))
    (folder / "a good one.py").write_text(GOOD)
    (folder / "bytes.py").write_bytes(GOOD.encode() + b"# \xff\xfe\n")
    (folder / "circle.py").symlink_to(folder / "circle.py")
    (folder / "dangling.py").symlink_to(folder / "nowhere.py")
    (folder / "deep.py").write_text(GOOD + "x = " + "(" * 5000 + ")" * 5000)
    (folder / "empty.py").write_text("")
    (folder / "folder.py").mkdir()
    (folder / "large.py").write_text(GOOD + "#" * MAX_BYTES)
    (folder / "linked out.py").symlink_to(folder.parent / "secret.py")
    (folder / "no entry.py").write_text("def other(values):\n    return double(values)\n")
    (folder / "null.py").write_text(GOOD + "\0")
    os.mkfifo(folder / "pipe.py")  # nobody writes: whoever opens it and waits, waits for ever
    (folder / "same.py").write_text("# the same\n" + GOOD.replace("2 *", "2*"))
    (folder / "syntax.py").write_text("def double(values, offset:\n")
    (folder / "z last.py").write_text(variant(4))
    found = read(double, folder)
    assert [*found.programs] == ["pool/a good one.py", "pool/z last.py"]
    reasons = {name.removeprefix("pool/"): reason for name, reason in found.unusable.items()}
    assert reasons.pop("circle.py") in (
        "a link that leads nowhere",
        "can't be read: a link that leads nowhere",
        "can't be read: Too many levels of symbolic links",
    )
    assert reasons == {
        "bytes.py": "not UTF-8 text",
        "dangling.py": "can't be read: No such file or directory",
        "deep.py": "not valid Python, or nested too deeply",
        "empty.py": "defines no function 'double'",
        "folder.py": "can't be read: Is a directory",
        "large.py": f"larger than {MAX_BYTES} bytes",
        "linked out.py": "a link to something outside the folder",
        "no entry.py": "defines no function 'double'",
        "null.py": "not valid Python, or nested too deeply",
        "pipe.py": "not a regular file",
        "same.py": "the same program as pool/a good one.py",
        "syntax.py": "not valid Python, or nested too deeply",
    }


def test_reading_runs_nothing(folder: Path, double: Problem) -> None:
    trace = folder / "it ran"
    (folder / "hostile.py").write_text(f"open({str(trace)!r}, 'w')\nraise SystemExit\n" + GOOD)
    assert len(read(double, folder).programs) == 1
    assert not trace.exists()


def test_a_link_within_the_folder_is_the_same_program_once(folder: Path, double: Problem) -> None:
    (folder / "a.py").write_text(GOOD)
    (folder / "b.py").symlink_to("a.py")
    found = read(double, folder)
    assert [*found.programs] == ["pool/a.py"]
    assert found.unusable == {"pool/b.py": "the same program as pool/a.py"}


def test_the_largest_file_that_is_read(folder: Path, double: Problem) -> None:
    (folder / "a.py").write_text(GOOD + "#" * (MAX_BYTES - len(GOOD)))
    assert len(read(double, folder).programs) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace("\n", "\r\n").encode(),
        GOOD.replace("\n", "\r").encode(),
    ],
)
def test_marks_and_line_ends_are_read_as_python_does(
    folder: Path, double: Problem, content: bytes
) -> None:
    (folder / "a.py").write_bytes(content)
    assert [each.text for each in read(double, folder).programs.values()] == [GOOD]


@pytest.mark.parametrize(
    "binding",
    [
        "double = lambda values, offset: values",
        "from numpy import add as double",
        "if True:\n    def double(values, offset): return values",
        "class double: pass",
    ],
)
def test_whatever_binds_the_entry_point_is_left_to_the_evaluator(
    folder: Path, double: Problem, binding: str
) -> None:
    (folder / "a.py").write_text(binding + "\n")
    assert len(read(double, folder).programs) == 1


@pytest.mark.parametrize(
    "reading", ["print(double)", "def f():\n    double = 1", "def f(double): pass", "x.double = 1"]
)
def test_an_entry_point_that_nothing_binds_is_missing(
    folder: Path, double: Problem, reading: str
) -> None:
    (folder / "a.py").write_text(reading + "\n")
    assert read(double, folder).programs == {}


def test_strange_names_are_shown_in_one_line_and_told_apart(folder: Path, double: Problem) -> None:
    names = [b"a\n.py", b"a\\n.py", b"a\xff.py", "aé.py".encode()]
    for number, name in enumerate(names):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_text(variant(number))
    found = [*read(double, folder).programs]
    assert len(set(found)) == 4
    assert all(name.isprintable() for name in found)
    assert "pool/aé.py" in found
    "".join(found).encode()  # no lone surrogate is left


READ = """
import sys
from pathlib import Path
from engine.pool import read_pool
from engine.problem import load_problem
found = read_pool([Path(sys.argv[2])], problem=load_problem(Path(sys.argv[1])), most_of_run=1)
print(len(found.programs))
"""


def test_warnings_about_a_programs_text_are_not_the_users(folder: Path) -> None:
    """In a process of its own, since pytest has its own way with warnings."""
    (folder / "a.py").write_text(GOOD + "x = '\\d' is 'y'\n")
    command = [sys.executable, "-c", READ, str(DOUBLE), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("1\n", "", 0)


def test_sources_of_one_name_are_told_apart(tmp_path: Path, double: Problem) -> None:
    for number in (1, 2):
        (tmp_path / str(number) / "pool").mkdir(parents=True)
        (tmp_path / str(number) / "pool" / "a.py").write_text(variant(number))
    found = read(double, tmp_path / "1" / "pool", tmp_path / "2" / "pool")
    assert [*found.programs] == ["pool/a.py", "pool#2/a.py"]


def test_a_source_that_is_no_folder_is_an_error(tmp_path: Path, double: Problem) -> None:
    (tmp_path / "file.py").write_text(GOOD)
    for source in (tmp_path / "missing", tmp_path / "file.py"):
        with pytest.raises(UserError, match="is not a folder; give a folder of programs"):
            read(double, source)
    (tmp_path / "circle").symlink_to("circle")
    for source in (Path("~nobody_such_user/pool"), tmp_path / "circle"):
        with pytest.raises(UserError, match=f"pool '{source}' can't be resolved"):
            read(double, source)


# Other runs.


def test_a_runs_best_programs_are_read(make_run: MakeRun, signal: Problem, folder: Path) -> None:
    assert signal.direction is Direction.MAXIMISE
    run = make_run("earlier", {"0.0": 0.4, "0.1": None, "0.2": 0.9, "0.3": 0.6})
    copied = next(iter(read(signal, run).programs.values())).text
    (folder / "copy.py").write_text(copied)
    found = read(signal, folder, run, most_of_run=3)
    names = ["pool/copy.py", "earlier/0.3", f"earlier/{INITIAL}"]
    assert [*found.programs] == names
    assert found.unusable == {"earlier/0.2": "the same program as pool/copy.py"}
    assert found.programs[names[2]].text == signal.initial_program


def test_of_a_runs_copies_the_next_best_program_takes_the_place_and_no_more_are_parsed(
    make_run: MakeRun, signal: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = []

    def spy(text: str) -> Program | None:
        parsed.append(text)
        return syntax.read(text)

    monkeypatch.setattr(runs, "read", spy)
    name = signal.entry_point
    programs = {
        "0.1": f"def {name}(x):\n    return x\n",
        "0.2": f"def {name}(x):  # again\n    return x\n",
    }
    scores = {"0.0": 0.6, "0.1": 0.9, "0.2": 0.8, "0.3": 0.7}
    found = read(signal, make_run("earlier", scores, programs=programs), most_of_run=2)
    assert [*found.programs] == ["earlier/0.1", "earlier/0.3"]
    assert len(parsed) == 3


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ("kind = 'child' AND subject = '0.1'", "nobody made candidate 0.1"),
        ("kind = 'call'", "child 0.0 has no call"),
        ("kind = 'session'", "it has no beginning"),
        ("kind = 'verdict' AND subject = 'initial'", "child 0.0 has no call"),
    ],
)
def test_a_run_whose_log_lacks_an_event_does_not_stop_the_rest(
    make_run: MakeRun, signal: Problem, lost: str, words: str
) -> None:
    damaged = make_run("damaged", {"0.0": 0.4, "0.1": 0.6})
    with closing(sqlite3.connect(damaged / "run.db")) as db:
        assert db.execute(f"DELETE FROM events WHERE {lost}").rowcount == 1
        db.commit()
    found = read(signal, damaged, make_run("whole", {"0.0": 0.4}))
    assert [*found.programs] == [f"whole/{INITIAL}", "whole/0.0"]
    assert [*found.unusable] == ["damaged"]
    assert f"log is damaged: {words}" in found.unusable["damaged"]


def test_a_run_of_another_problem_or_a_damaged_one_does_not_stop_the_rest(
    make_run: MakeRun, signal: Problem, double: Problem, folder: Path
) -> None:
    run = make_run("earlier", {"0.0": 0.4})
    damaged = make_run("damaged", {"0.0": 0.4})
    (damaged / "run.db").write_bytes(b"not a database" * 100)
    bare = folder.parent / "bare"
    bare.mkdir()
    (bare / "run.db").write_bytes(b"")
    (folder / "good.py").write_text(GOOD)
    found = read(double, run, folder)
    assert [*found.programs] == ["pool/good.py"]
    assert list(found.unusable) == ["earlier"]
    assert "is a run of problem signal, not of double" in found.unusable["earlier"]
    found = read(signal, damaged, bare, run)
    assert [*found.programs] == [f"earlier/{INITIAL}", "earlier/0.0"]
    assert list(found.unusable) == ["damaged", "bare"]
    assert "is not the log of a run" in found.unusable["damaged"]
    assert "is not a run: it has no config.yaml" in found.unusable["bare"]
