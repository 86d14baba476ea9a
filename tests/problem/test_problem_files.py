"""Problems whose programs have several files, and those whose judge is a command."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from halve import DECLARATION, refused

from engine.core import JUDGED, JudgeKind
from engine.core.bundle import files_of
from engine.problem import load_problem

SOLVE = "from parts.half import half\n\n\ndef solve(x):\n    return half(x)\n"
HALF = "# EVOLVE-BLOCK-START\ndef half(x):\n    return x / 2\n# EVOLVE-BLOCK-END\n"
COMMAND = """
direction: maximise
command: [./evaluate, --fast]
metric: speed
limits: {seconds: 5, memory_mb: 64, processes: 9, scratch_mb: 20}
"""


@pytest.fixture
def several(folder: Path) -> Path:
    """A problem whose initial program has two files."""
    (folder / "initial.py").unlink()
    (folder / "initial" / "parts").mkdir(parents=True)
    (folder / "initial" / "main.py").write_text(SOLVE)
    (folder / "initial" / "parts" / "half.py").write_text(HALF)
    (folder / "problem.yaml").write_text(DECLARATION.replace("solve", "main.solve"))
    return folder


@pytest.fixture
def judged(folder: Path) -> Path:
    """A problem of a program in C++ that a command judges."""
    (folder / "initial.py").unlink()
    (folder / "evaluator.py").unlink()
    (folder / "initial").mkdir()
    (folder / "initial" / "main.cpp").write_text("int main() { return 0; }\n")
    (folder / "evaluate").write_text("#!/bin/sh\necho '{\"speed\": 1}'\n")
    (folder / "evaluate").chmod(0o755)
    (folder / "problem.yaml").write_text(COMMAND)
    return folder


def test_the_files_of_the_folder_are_one_program(several: Path) -> None:
    (several / "initial" / "__pycache__").mkdir()
    (several / "initial" / "__pycache__" / "main.pyc").write_bytes(b"\xff")
    problem = load_problem(several)
    assert files_of(problem.initial_program) == {"main.py": SOLVE, "parts/half.py": HALF}
    assert problem.entry_point == "main.solve"
    assert problem.judge is None


def test_every_file_counts_in_the_fingerprint(several: Path) -> None:
    before = load_problem(several).fingerprint
    (several / "initial" / "parts" / "half.py").write_text(HALF + "\n")
    assert load_problem(several).fingerprint != before


def write(path: str, text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / path).write_text(text) and None


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (write("initial.py", "x = 1\n"), "has both initial.py and initial/; remove one"),
        (write("initial/main.py", "def f(:\n"), "main.py:1: it does not parse"),
        (write("initial/.hidden", ""), "'.hidden' is no name of a program's file"),
        (write("initial/a b.py", ""), "'a b.py' is no name"),
        (
            write("initial/main.py", "\n# EVOLVE-BLOCK-START\n"),
            "main.py line 2: EVOLVE-BLOCK-START",
        ),
        (write("problem.yaml", DECLARATION), "entry_point solve names no module; give module."),
        (
            write("problem.yaml", DECLARATION.replace("solve", "gone.solve")),
            "entry_point gone.solve is in no file of",
        ),
    ],
)
def test_a_bad_program_of_several_files(
    several: Path, break_it: Callable[[Path], None], message: str
) -> None:
    break_it(several)
    assert message in refused(several)


def test_a_file_that_is_no_text(several: Path) -> None:
    (several / "initial" / "data.bin").write_bytes(b"\xff\xfe\x00")
    assert "data.bin can't be read as UTF-8" in refused(several)


def test_a_single_file_has_no_module(folder: Path) -> None:
    (folder / "problem.yaml").write_text(DECLARATION.replace("solve", "main.solve"))
    assert "entry_point main.solve names a module; give the function alone" in refused(folder)


def test_blocks_of_a_single_file(folder: Path) -> None:
    (folder / "initial.py").write_text("# EVOLVE-BLOCK-END\ndef solve(x):\n    return x\n")
    assert "initial.py: line 1: EVOLVE-BLOCK-END without a start" in refused(folder)


def test_a_command_is_a_judge(judged: Path) -> None:
    problem = load_problem(judged)
    assert problem.judge is not None
    assert problem.judge.kind is JudgeKind.COMMAND
    assert problem.judge.command == (str(judged / "evaluate"), "--fast")
    assert (problem.judge.metric, problem.judge.processes) == ("speed", 9)
    assert problem.judge.scratch_mb == 20
    assert problem.stages is JUDGED
    assert problem.entry_point == ""


def test_whatever_a_command_may_read_counts_in_the_fingerprint(judged: Path) -> None:
    (judged / "judge" / "parts").mkdir(parents=True)
    (judged / "judge" / "parts" / "score.py").write_text("WEIGHT = 1\n")
    before = load_problem(judged).fingerprint
    for name in ("cheats", "pool", "judge/__pycache__"):  # of which nothing is the judge's
        (judged / name).mkdir()
        (judged / name / "other.txt").write_text("")
    assert load_problem(judged).fingerprint == before
    (judged / "judge" / "parts" / "score.py").write_text("WEIGHT = 2\n")
    assert load_problem(judged).fingerprint != before


def test_python_is_the_interpreter_that_runs_this(judged: Path) -> None:
    (judged / "problem.yaml").write_text(COMMAND.replace("./evaluate", "python"))
    judge = load_problem(judged).judge
    assert judge is not None and judge.command[0] == sys.executable


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[./evaluate, --fast]", "./evaluate", "must be a list"),
        ("[./evaluate, --fast]", "[]", "must be a list"),
        ("[./evaluate, --fast]", "[1]", "must be a list"),
        ("./evaluate", "./gone", "command ./gone does not exist"),
        ("./evaluate", "./problem.yaml", "can't be executed; run chmod +x"),
        ("./evaluate", "no-such-program", "is not on the PATH; install it"),
        ("metric: speed", "metric: 3", "metric is 3; it must be the name of a metric"),
        ("metric: speed", "entry_point: f", "leave entry_point out with a command"),
        ("metric: speed", "modules: [a]", "leave modules out with a command"),
        ("processes: 9", "processes: 0", "processes is 0; it must be a whole number above 0"),
        ("scratch_mb: 20", "scratch_mb: 2.5", "scratch_mb is 2.5; it must be a whole number"),
        ("processes: 9", "processes: 4194304", "above 0 and below 4,194,304"),
        ("scratch_mb: 20", f"scratch_mb: 1{'0' * 30}", "above 0 and below 1,000,000,000"),
        ("scratch_mb: 20", "disk_mb: 2", "unknown limit 'disk_mb'; valid keys: seconds"),
    ],
)
def test_a_bad_command(judged: Path, old: str, new: str, message: str) -> None:
    assert old in COMMAND
    (judged / "problem.yaml").write_text(COMMAND.replace(old, new))
    assert message in refused(judged)


def test_a_command_in_a_folder_that_no_box_can_read(judged: Path) -> None:
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("there is no /dev/shm to write in")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as there:
        folder = Path(there) / "judged"
        shutil.copytree(judged, folder)
        message = refused(folder)
    assert "can't read what lies in /dev/shm" in message
    assert message.endswith("; keep the problem in another folder")


def test_a_metric_and_its_limits_belong_to_a_command(folder: Path) -> None:
    (folder / "problem.yaml").write_text(DECLARATION + "metric: speed\n")
    assert "leave metric out without a command" in refused(folder)
    (folder / "problem.yaml").write_text(DECLARATION.replace("64}", "64, processes: 3}"))
    assert "unknown limit 'processes'; valid keys: seconds, memory_mb" in refused(folder)


def test_a_command_reads_no_data(judged: Path) -> None:
    assert "reads no data" in refused(judged, data=judged / "evaluate")
