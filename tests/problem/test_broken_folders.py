"""Broken problem folders: one line with file, line and remedy, from every command alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from halve import DECLARATION, EVALUATOR

from engine import check, evaluate, run

INITIAL = "def solve(x):\n    return x / 2\n"
NO_OUTPUT = EVALUATOR.replace('outputs={"x": ArraySpec(shape=())}', "outputs={}")


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A folder of which one file is another.

    Attributes:
        name: of the test.
        file: which one.
        text: what it holds; None for nothing, not even the file.
        place: the file and line that has to be mended; empty for the folder itself.
        words: what the message says of it.
        remedy: and what to do.
        runs: whether it shows only when the initial program is run.
        limit: seconds that the initial program has.
    """

    name: str
    file: str
    text: str | None
    place: str
    words: str
    remedy: str
    runs: bool = False
    limit: float = 60  # a loaded machine is no failure


BROKEN = (
    Broken(
        name="a file is missing",
        file="evaluator.py",
        text=None,
        place="",
        words="has no evaluator.py",
        remedy="it needs problem.yaml, statement.md, initial.py, evaluator.py",
    ),
    Broken(
        name="no YAML",
        file="problem.yaml",
        text="direction: minimise\nentry_point: solve\nlimits: {seconds: 1, memory_mb: 64\n",
        place="problem.yaml:4",
        words="it is not valid YAML",
        remedy="mend it",
    ),
    Broken(
        name="an unknown key",
        file="problem.yaml",
        text=f"{DECLARATION}isolate_case: true\n",
        place="problem.yaml:7",
        words="unknown key 'isolate_case'",
        remedy="did you mean isolate_cases?",
    ),
    Broken(
        name="a bad limit",
        file="problem.yaml",
        text=DECLARATION.replace("seconds: 0.5", "seconds: half"),
        place="problem.yaml:4",
        words="seconds is 'half'",
        remedy="it must be a number",
    ),
    Broken(
        name="an empty statement",
        file="statement.md",
        text=" \n\n",
        place="statement.md:1",
        words="it is empty",
        remedy="say in it what a program has to do",
    ),
    Broken(
        name="another entry point",
        file="initial.py",
        text=INITIAL.replace("solve", "slove"),
        place="initial.py",
        words="it defines no function 'solve'",
        remedy="problem.yaml:3; define it, or mend entry_point",
    ),
    Broken(
        name="no Python",
        file="initial.py",
        text="def solve(x):\n    return (x\n",
        place="initial.py:2",
        words="'(' was never closed",
        remedy="mend it",
    ),
    Broken(
        name="an import that fails",
        file="evaluator.py",
        text=f"from .parts import HALF\n{EVALUATOR}",
        place="parts.py:2",
        words="can't be imported: ZeroDivisionError: division by zero",
        remedy="mend it",
    ),
    Broken(
        name="cases that fail",
        file="evaluator.py",
        text=EVALUATOR.replace("return [Case", "return [][3], [Case"),
        place="evaluator.py:5",
        words="its cases can't be had: IndexError: list index out of range",
        remedy="mend it",
    ),
    Broken(
        name="a contract of nothing",
        file="evaluator.py",
        text=NO_OUTPUT,
        place="evaluator.py:4",
        words="one declares no outputs",
        remedy="mend its contract",
        runs=True,
    ),
    Broken(
        name="a score that fails",
        file="evaluator.py",
        text=EVALUATOR.replace('outputs[0]["x"]', 'outputs[0]["y"]'),
        place="evaluator.py:7",
        words="KeyError: 'y' (evaluator.py:8)",
        remedy="mend the evaluator",
        runs=True,
    ),
    Broken(
        name="no score among the metrics",
        file="evaluator.py",
        text=EVALUATOR.replace('{"score"', '{"value"'),
        place="evaluator.py:7",
        words="there is no metric 'score', only value",
        remedy="mend the evaluator",
        runs=True,
    ),
    Broken(
        name="another answer than declared",
        file="initial.py",
        text=INITIAL.replace("x / 2", "[x, x]"),
        place="initial.py:1",
        words="one: x has shape (2,), expected ()",
        remedy="evaluator.py:4 declares",
        runs=True,
    ),
    Broken(
        name="an initial program that fails",
        file="initial.py",
        text=INITIAL.replace("x / 2", "x / 0"),
        place="initial.py",
        words="line 2: ZeroDivisionError",
        remedy="mend it",
        runs=True,
    ),
    Broken(
        name="an initial program that takes too long",
        file="initial.py",
        text=INITIAL.replace("    ", "    while True: pass\n    "),
        place="problem.yaml:4",
        words="ran longer than the limit of 0.5 s",
        remedy="raise limits.seconds, or make it faster",
        runs=True,
        limit=0.5,
    ),
    Broken(
        name="a target that is no aim",
        file="problem.yaml",
        text=f"{DECLARATION}target: 1.5\n",
        place="problem.yaml:7",
        words="the target is 1.5, no better than the initial program's score, 1.0 (minimise)",
        remedy="mend 'target', or leave it out",
        runs=True,
    ),
)

SOLVE = "from parts.half import half\n\n\ndef solve(x):\n    return half(x)\n"


@pytest.mark.parametrize(
    ("half", "answer", "place"),
    [
        ("1 / 0", "half(x)", "initial/parts/half.py: "),
        ("x / 2", "[x, x]", "initial/solve.py:4: "),
    ],
)
def test_a_broken_program_of_several_files(
    folder: Path, half: str, answer: str, place: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "initial.py").unlink()
    (folder / "initial" / "parts").mkdir(parents=True)
    (folder / "initial" / "solve.py").write_text(SOLVE.replace("half(x)", answer))
    (folder / "initial" / "parts" / "half.py").write_text(f"def half(x):\n    return {half}\n")
    declared = DECLARATION.replace("solve", "solve.solve").replace("seconds: 0.5", "seconds: 60")
    (folder / "problem.yaml").write_text(declared)
    assert evaluate.main([f"problem.path={folder}", "program=initial"]) == 2
    assert f"error: {folder / place}" in capfd.readouterr().err


Command = Callable[[Path], int]
COMMANDS: dict[str, Command] = {
    "run": lambda folder: run.main(
        [f"problem.path={folder}", "model=mutation", "budget.candidates=1", "evaluation.workers=1"]
    ),
    "evaluate": lambda folder: evaluate.main(
        [f"problem.path={folder}", f"program={folder / 'initial.py'}"]
    ),
    "check": lambda folder: check.main([f"problem.path={folder}"]),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name)
def test_a_broken_folder(
    broken: Broken,
    command: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    (folder / "parts.py").write_text("ONE = 1\nHALF = 1 / 0\n")
    if broken.text is None:
        (folder / broken.file).unlink()
    else:
        (folder / broken.file).write_text(broken.text)
    if (declaration := folder / "problem.yaml").exists():
        text = declaration.read_text().replace("seconds: 0.5", f"seconds: {broken.limit:g}")
        declaration.write_text(text)
    assert COMMANDS[command](folder) == 2
    out, err = capfd.readouterr()
    *before, error = err.splitlines()
    assert out == ""
    assert broken.runs or not before  # else a run has said which walls stand
    assert not any(line.startswith(("error", "Traceback")) for line in before)
    where = str(folder / broken.place) + ":" * bool(broken.place)
    assert error.startswith("error: ") and where in error, error
    assert broken.words in error and broken.remedy in error, error
    assert [*here.iterdir()] == []
