"""Shapes that other systems' folders come in, evaluated as ``python -m engine.evaluate`` does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from peer_folders import CONFIG, EVALUATOR, PROGRAM, SHINKA_EVALUATOR, openevolve, shinka, write

from engine import check, evaluate, run
from engine.core import JudgeKind
from engine.core.bundle import files_of
from engine.judge.setup import Setup
from engine.problem import load_problem
from engine.report.__main__ import main

LOAD = """
import importlib.util
import sys
{imports}

def load(path):
    spec = importlib.util.spec_from_file_location("program", path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program
"""


def scored(capsys: pytest.CaptureFixture[str], folder: Path, *options: str) -> float:
    """Return the score of a folder's initial program; fails where it has none."""
    code = evaluate.main([f"problem.path={folder}", "program=initial", *options])
    printed = capsys.readouterr()
    assert code == 0, printed
    (line,) = [line for line in printed.out.splitlines() if line.startswith("score")]
    return float(line.split()[1])


SCRIPT = (
    LOAD.format(imports="import json")
    + """
WANTED = json.load(open("/benchmark/wanted.json"))

def main():
    found = load(sys.argv[1]).squares(len(WANTED))
    print("so far so good")
    right = sum(one == other for one, other in zip(found, WANTED)) / len(WANTED)
    print(json.dumps({"status": STATUS, "combined_score": right, "metrics": {"of": 5}}))

if __name__ == "__main__":
    STATUS = "success"
    main()
"""
)


def container(folder: Path, evaluator: str) -> Path:
    """Return a folder of SkyDiscover's whose evaluator prints a JSON object."""
    files = {
        "initial_program.py": PROGRAM,
        "config.yaml": CONFIG,
        "evaluator/evaluator.py": evaluator,
        "evaluator/wanted.json": "[0, 1, 4, 9]",
        "evaluator/evaluate.sh": 'python /benchmark/evaluator.py "$1"\n',
    }
    return write(folder / "squares", files)


def test_a_script_in_a_container_is_run_without_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = container(tmp_path, SCRIPT)
    assert scored(capsys, folder, "evaluation.strict=true") == 0.5


def test_a_script_may_say_that_it_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = container(tmp_path, SCRIPT.replace('"success"', '"error"').replace("right}", "0}"))
    text = (folder / "evaluator" / "evaluator.py").read_text()
    write(folder, {"evaluator/evaluator.py": text.replace('"combined_score": right, ', "")})
    assert evaluate.main([f"problem.path={folder}", "program=initial"]) == 2
    assert "the evaluator's status is 'error'" in capsys.readouterr().err


def test_a_text_is_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluator = "def evaluate(path):\n    return {'combined_score': len(open(path).read())}\n"
    folder = openevolve(tmp_path, initial_program=None, evaluator=evaluator)
    write(folder, {"initial_prompt.txt": "Say yes.\n", "initial_prompt_notes.txt": "No.\n"})
    assert [*files_of(load_problem(folder).initial_program)] == ["program.txt"]
    assert scored(capsys, folder) == len("Say yes.\n")


def test_a_module_of_the_folder_above(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = "import os\nsys.path.insert(0, os.path.dirname(os.path.dirname(__file__)))\n"
    evaluator = LOAD.format(imports=f"{path}from common import count")
    evaluator += "\ndef evaluate(path):\n    return {'combined_score': count(load(path))}\n"
    folder = openevolve(tmp_path, evaluator=evaluator)
    write(tmp_path, {"common.py": "def count(program):\n    return len(program.squares(5))\n"})
    first = load_problem(folder).fingerprint
    assert scored(capsys, folder, "evaluation.strict=true") == 5.0
    write(tmp_path, {"common.py": "def count(program):\n    return 1\n"})
    assert load_problem(folder).fingerprint != first


DEEP = {
    "a long elif": "OTHER = 'other'\ndef other(x):\n    if x == 0:\n        return 0\n"
    + "".join(f"    elif x == {number}:\n        return {number}\n" for number in range(1, 1200)),
    "a long sum": f"SUM = {' + '.join(['1'] * 1500)}\n",
    "many attributes": f"OTHER = 'other'\ndef other(x):\n    return x{'.it' * 1500}()\n",
    "a guard": f"if __name__ == '__main__' and {' + '.join(['1'] * 1500)}:\n    pass\n",
}


@pytest.mark.parametrize("deep", DEEP.values(), ids=DEEP)
def test_source_that_is_nested_deeper_than_python_recurses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], deep: str
) -> None:
    program = f"import beside\n{PROGRAM}{deep}"
    folder = openevolve(tmp_path, evaluator=EVALUATOR + deep, initial_program=program)
    write(folder, {"beside.py": deep})
    assert scored(capsys, folder, "evaluation.strict=true") == 0.4
    assert check.main([f"problem.path={folder}", "runs=2"]) == 0
    assert capsys.readouterr().err == ""


def test_the_variables_that_an_evaluator_asks_for_reach_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluator = LOAD.format(imports="import os\nfrom os import environ as variables")
    evaluator += """
SIZE = int(os.environ.get("BROOD_SIZE", "2"))
HIDDEN = "BROOD_OTHER" in os.environ or bool(variables.get("BROOD_API_KEY"))

def evaluate(path):
    more = int(variables["BROOD_MORE"]) + int(os.getenv("BROOD_NOTHING", "0"))
    return {"combined_score": len(load(path).squares(SIZE)) + more + 100 * HIDDEN}
"""
    folder = openevolve(tmp_path, evaluator=evaluator)
    for name, value in (("SIZE", "7"), ("MORE", "4"), ("UNASKED", "1"), ("API_KEY", "1")):
        monkeypatch.setenv(f"BROOD_{name}", value)
    problem = load_problem(folder)
    assert problem.judge is not None
    given = Setup.from_json(problem.judge.setup).environment
    assert given == {"BROOD_SIZE": "7", "BROOD_MORE": "4"}
    assert scored(capsys, folder) == 11.0
    monkeypatch.setenv("BROOD_SIZE", "8")
    assert load_problem(folder).fingerprint != problem.fingerprint


def test_what_shinka_calls_incorrect_has_failed_whatever_it_scores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shinka(tmp_path)
    text = SHINKA_EVALUATOR.replace("len(result) == 5", "len(result) == 6")
    write(folder, {"evaluate.py": text})
    assert evaluate.main([f"problem.path={folder}", "program=initial"]) == 2
    err = capsys.readouterr().err
    assert "Validation failed: five numbers are needed" in err
    assert f"{folder / 'evaluate.py'}:20:" in err  # where main() begins


def test_shinkas_module_of_the_same_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shinka(tmp_path)
    other = "from shinka.core.wrap_eval import run_shinka_eval, save_json_results"
    text = SHINKA_EVALUATOR.replace("from shinka.core import run_shinka_eval", other)
    write(folder, {"evaluate.py": text})
    assert scored(capsys, folder) == 0.4


def test_an_enumeration_that_both_import(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluator = LOAD.format(imports="from moves import Move")
    evaluator += """
def evaluate(path):
    program = load(path)
    found = program.squares([Move.UP, Move.DOWN])
    right = [isinstance(each, Move) and each in (Move.UP, Move.DOWN) for each in found]
    return {"combined_score": sum(right) / len(right)}
"""
    program = "from moves import Move\ndef squares(given):\n"
    program += "    return [Move.DOWN, given[0]] if given[0] is Move.UP else [1]\n"
    folder = openevolve(tmp_path, evaluator=evaluator, initial_program=program)
    members = "import enum\nclass Move(enum.Enum):\n    UP = 0\n    DOWN = 1\n"
    write(folder, {"moves.py": members})
    assert scored(capsys, folder, "evaluation.strict=true") == 1.0


def test_a_baseline_in_the_folder_may_be_the_initial_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluator = LOAD.format(imports="import initial_program")
    evaluator += """
def evaluate(path):
    mine, theirs = load(path).squares(5), initial_program.squares(5)
    return {"combined_score": float(mine == theirs)}
"""
    folder = openevolve(tmp_path, evaluator=evaluator)
    assert scored(capsys, folder, "evaluation.strict=true") == 1.0


def test_a_library_that_starts_threads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas")
    evaluator = LOAD.format(imports="import pandas as pd")
    evaluator += """
def evaluate(path):
    frame = pd.DataFrame({"found": load(path).squares(5)})
    return {"combined_score": float(frame.found.sum())}
"""
    assert scored(capsys, openevolve(tmp_path, evaluator=evaluator)) == 10.0


def test_a_large_module_that_programs_import(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = openevolve(tmp_path, initial_program=f"import words\n{PROGRAM}")
    write(folder, {"words.py": f"WORDS = {['word'] * 100_000}\n"})
    assert scored(capsys, folder, "evaluation.strict=true") == 0.4


def test_an_evaluator_that_closes_its_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluator = EVALUATOR.replace("    found =", "    import sys; sys.stdout.close()\n    found =")
    assert scored(capsys, openevolve(tmp_path, evaluator=evaluator)) == 0.4


@pytest.mark.parametrize("value", ["true", "maybe"])
def test_strict_refuses_as_a_run_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    evaluator = EVALUATOR.replace("program.squares(5)", "eval('program.squares(5)')")
    folder = openevolve(tmp_path, evaluator=evaluator)
    options = [f"problem.path={folder}", f"evaluation.strict={value}"]
    assert evaluate.main([*options, "program=initial"]) == 2
    err = capsys.readouterr().err
    if value == "maybe":
        assert "evaluation.strict is 'maybe'; it must be true or false" in err
        return
    assert run.main([*options, "model=mutation", f"runs={tmp_path / 'runs'}"]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == err.splitlines()[-1]
    assert "evaluator.py:12: the evaluator executes text (eval); so it can't be split" in err
    assert not (tmp_path / "runs").exists()


def test_a_run_has_its_report_when_the_folder_is_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:

    folder = openevolve(tmp_path)
    problem = load_problem(folder)
    assert problem.judge is not None and problem.judge.kind is JudgeKind.SPLIT
    options = [f"problem.path={folder}", "model=mutation", "budget.candidates=8"]
    assert run.main([*options, f"runs={tmp_path}", "name=one"]) == 0
    summary = json.loads((tmp_path / "one" / "summary.json").read_text())
    assert (summary["isolation"], summary["direction"]) == ("split", "maximise")
    pages = [tmp_path / "here.html", tmp_path / "gone.html"]
    assert main([str(tmp_path / "one"), f"html={pages[0]}"]) == 0
    shutil.rmtree(folder)
    assert main([str(tmp_path / "one"), f"html={pages[1]}"]) == 0
    assert all("squares: 1 run" in page.read_text() for page in pages)
    (tmp_path / "one" / "summary.json").unlink()
    capsys.readouterr()
    assert main([str(tmp_path / "one"), f"html={pages[1]}"]) == 2
    assert f"{folder}: the problem's folder is gone" in capsys.readouterr().err
