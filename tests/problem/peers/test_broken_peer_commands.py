"""Broken folders of other systems, given to each command: one line, exit code 2, nothing left."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from peer_folders import CONFIG, EVALUATOR, PROGRAM, SHINKA_EVALUATOR, write

from engine import check, evaluate, run

OPENEVOLVE = {"initial_program.py": PROGRAM, "evaluator.py": EVALUATOR, "config.yaml": CONFIG}
SHINKA = {"initial.py": PROGRAM, "evaluate.py": SHINKA_EVALUATOR}
SKYDISCOVER = {
    "initial_program.py": PROGRAM,
    "config.yaml": CONFIG,
    "evaluator/evaluator.py": EVALUATOR,
    "evaluator/evaluate.sh": "python /benchmark/evaluator.py $1\n",
}
RETURN = 'return {"combined_score": right / 5, "right": right, "artifacts": {"found": str(found)}}'


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A folder of which some files are others.

    Attributes:
        name: of the test.
        base: the files of a folder that is whole.
        files: those that are others; None for one that is not there.
        place: the file and line that has to be mended; empty for the folder itself.
        words: what the message says of it.
        remedy: and what to do.
        runs: whether it shows only when the initial program is run.
    """

    name: str
    base: dict[str, str] = field(default_factory=lambda: OPENEVOLVE)
    files: dict[str, str | None]
    place: str
    words: str
    remedy: str
    runs: bool = False


BROKEN = (
    Broken(
        name="no initial program",
        files={"initial_program.py": None},
        place="evaluator.py",
        words="there is no program beside it",
        remedy="add initial_program.py",
    ),
    Broken(
        name="a folder for a program",
        files={"initial_program.py": None, "initial_program/main.py": PROGRAM},
        place="initial_program",
        words="the initial program is a folder",
        remedy="give one file, initial_program.py",
    ),
    Broken(
        name="no evaluator",
        files={"evaluator.py": None},
        place="initial_program.py",
        words="there is no evaluator beside it",
        remedy="add evaluator.py with evaluate(program_path)",
    ),
    Broken(
        name="an evaluator that does not parse",
        files={"evaluator.py": "import os\ndef evaluate(path:\n"},
        place="evaluator.py:2",
        words="does not parse",
        remedy="mend it",
    ),
    Broken(
        name="an evaluator without its function",
        files={"evaluator.py": "def assess(path):\n    return {}\n"},
        place="evaluator.py:1",
        words="defines no function evaluate",
        remedy="define evaluate(program_path)",
    ),
    Broken(
        name="a stage that takes nothing",
        files={
            "evaluator.py": EVALUATOR
            + "def evaluate_stage1():\n    return {}\ndef evaluate_stage2(path):\n    return {}\n"
        },
        place="evaluator.py:15",
        words="evaluate_stage1() takes no argument",
        remedy="give it one, the program's path",
    ),
    Broken(
        name="a library that is not there",
        files={"evaluator.py": f"import json\nimport not_to_be_had\n{EVALUATOR}"},
        place="evaluator.py:2",
        words="imports not_to_be_had, which is not installed",
        remedy="install it where this runs",
    ),
    Broken(
        name="a configuration that is no YAML",
        files={"config.yaml": "evaluator:\n  timeout: [3\n"},
        place="config.yaml:3",
        words="is not valid YAML",
        remedy="mend it",
    ),
    Broken(
        name="a time limit that is none",
        files={"config.yaml": "prompt:\n  system_message: x\nevaluator:\n  timeout: never\n"},
        place="config.yaml:4",
        words="evaluator.timeout is 'never'",
        remedy="it must be a number above 0",
    ),
    Broken(
        name="a time that is out of range",
        base=SHINKA,
        files={"run_evo.py": "JOB = dict(\n    time='200:00:00',\n)\n"},
        place="run_evo.py:2",
        words="time is '200:00:00'",
        remedy="it must be HOURS:MINUTES:SECONDS",
    ),
    Broken(
        name="an evaluator that is nested too deeply to be parsed",
        files={"evaluator.py": f"{EVALUATOR}\nSUM = {' + '.join(['1'] * 5000)}\n"},
        place="evaluator.py",
        words="is nested too deeply to be parsed",
        remedy="flatten it",
    ),
    Broken(
        name="a program that does not parse",
        base=SHINKA,
        files={"initial.py": "# EVOLVE-BLOCK-START\nx = (\n# EVOLVE-BLOCK-END\n"},
        place="initial.py:2",
        words="does not parse",
        remedy="mend it",
    ),
    Broken(
        name="a block without an end",
        base=SKYDISCOVER,
        files={"initial_program.py": "x = 1\n# EVOLVE-BLOCK-START\nx = 2\n"},
        place="initial_program.py:2",
        words="",
        remedy="give each block a start and an end",
    ),
    Broken(
        name="a container without Python",
        base=SKYDISCOVER,
        files={"evaluator/evaluator.py": None},
        place="evaluator/evaluate.sh",
        words="an evaluator in a container is not run",
        remedy="give an evaluator.py",
    ),
    Broken(
        name="a program that needs a library",
        files={"initial_program.py": f"import json\nimport not_to_be_had.deep\n{PROGRAM}"},
        place="initial_program.py:2",
        words="No module named 'not_to_be_had'",
        remedy="install not_to_be_had where this runs",
        runs=True,
    ),
    Broken(
        name="a program that fails",
        files={"initial_program.py": PROGRAM.replace("range(count)", "range(count / 0)")},
        place="initial_program.py:3",
        words="ZeroDivisionError",
        remedy="mend the program or its evaluator",
        runs=True,
    ),
    Broken(
        name="an evaluator that fails",
        base=SKYDISCOVER,
        files={"evaluator/evaluator.py": EVALUATOR.replace("right = sum", "right = [][1] + sum")},
        place="evaluator/evaluator.py:13",
        words="IndexError: list index out of range",
        remedy="mend the evaluator, or what it reads",
        runs=True,
    ),
    Broken(
        name="an evaluator that asks for what is not there",
        files={"evaluator.py": EVALUATOR.replace("import importlib", "open('data.csv')\n#", 1)},
        place="evaluator.py:3",
        words="No such file or directory: 'data.csv'",
        remedy="mend the evaluator, or what it reads",
        runs=True,
    ),
    Broken(
        name="a module that nothing stands for",
        base=SHINKA,
        files={"evaluate.py": f"from shinka.core import x\nimport shinka.far\n{SHINKA_EVALUATOR}"},
        place="evaluate.py:1",
        words="cannot import name 'x'",
        remedy="mend the evaluator, or what it reads",
        runs=True,
    ),
    Broken(
        name="no score",
        files={"evaluator.py": EVALUATOR.replace(RETURN, 'return {"share": right / 5}')},
        place="evaluator.py:6",
        words="returned no metric 'combined_score'",
        remedy="give metric=NAME, one of: share",
        runs=True,
    ),
    Broken(
        name="a score that is no number",
        files={"evaluator.py": EVALUATOR.replace("right / 5", "float('nan')")},
        place="evaluator.py:6",
        words="the metric combined_score is nan",
        remedy="mend the program or its evaluator",
        runs=True,
    ),
    Broken(
        name="a list in place of metrics",
        files={"evaluator.py": EVALUATOR.replace(RETURN, "return [right]")},
        place="evaluator.py:6",
        words="evaluate() returned list, expected a dict or EvaluationResult",
        remedy="mend the program or its evaluator",
        runs=True,
    ),
    Broken(
        name="no results",
        base=SHINKA,
        files={"evaluate.py": "import sys\nprint('--results_dir', sys.argv)\n"},
        place="evaluate.py",
        words="wrote no metrics.json to --results_dir",
        remedy="mend the program or its evaluator",
        runs=True,
    ),
    Broken(
        name="a program that takes too long",
        files={
            "initial_program.py": PROGRAM.replace("    return", "    while True: pass\n    return"),
            "config.yaml": "evaluator:\n  timeout: 0.7\n",
        },
        place="config.yaml:2",
        words="ran longer than the limit of 0.7 s",
        remedy="raise evaluator.timeout, or make it faster",
        runs=True,
    ),
)

Command = Callable[[Path], int]
COMMANDS: dict[str, Command] = {
    "run": lambda folder: run.main(
        [f"problem.path={folder}", "model=mutation", "budget.candidates=1", "evaluation.workers=1"]
    ),
    "evaluate": lambda folder: evaluate.main([f"problem.path={folder}", "program=initial"]),
    "check": lambda folder: check.main([f"problem.path={folder}"]),
}


def cases() -> list[object]:
    """Return each folder with each command; those that run a program with one, in turn."""
    found: list[object] = []
    for number, broken in enumerate(BROKEN):
        names = [[*COMMANDS][number % len(COMMANDS)]] if broken.runs else [*COMMANDS]
        found += [pytest.param(broken, name, id=f"{broken.name}-{name}") for name in names]
    return found


@pytest.mark.parametrize(("broken", "command"), cases())
def test_a_broken_folder_of_another_system(
    broken: Broken,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    texts = {name: text for name, text in {**broken.base, **broken.files}.items() if text}
    folder = write(tmp_path / "squares", texts)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert COMMANDS[command](folder) == 2
    out, err = capfd.readouterr()
    *said, error = err.splitlines()
    assert out == ""
    assert broken.runs or not said, said  # else a run has said what it read
    assert not any(line.startswith(("error", "Traceback")) for line in said)
    place = re.escape(str(folder / broken.place)) + (":" if broken.place else "")
    assert re.match(f"error: (problem folder )?{place}", error), error
    assert broken.words in error and broken.remedy in error, error
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    assert [*here.iterdir()] == []
