"""Folders of other systems, evaluated in boxes as ``python -m engine.evaluate`` does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from peer_folders import EVALUATOR, PROGRAM, openevolve, shinka, skydiscover, write

from engine.core import JudgeKind, UserError
from engine.evaluate import main
from engine.evaluation import rehearsed
from engine.judge.setup import Setup
from engine.problem import load_problem

ATTACK = """
import sys
def squares(count):
    for name, module in list(sys.modules.items()):
        if "evaluation" in name:
            module.sum = lambda _: 1e9
    return [0]
"""

SHARED = os.environ.get("BROOD_PEERS", "")
INITIAL = {
    "openevolve-circle_packing_with_artifacts": (0.364237, 0.364237),
    "openevolve-function_minimization": (1.04, 1.42),
    "openevolve-heilbronn_convex_13": (0.010423, 0.010423),
    "openevolve-k_module_problem": (0.0, 0.0),
    "shinka-sine_approx_headless": (0.104521, 0.104521),
    "skydiscover-prism": (21.891622, 21.891622),
    "skydiscover-signal_processing": (0.499049, 0.499049),
}


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Return the exit code, and all that was printed."""
    code = main(arguments)
    printed = capsys.readouterr()
    return code, printed.out + printed.err


@pytest.mark.parametrize("make", [openevolve, skydiscover, shinka])
def test_the_initial_program_scores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: object
) -> None:
    folder = make(tmp_path)  # type: ignore[operator]
    code, text = said(capsys, f"problem.path={folder}", "program=initial")
    assert code == 0
    assert "score      0.4" in text
    assert "secret" not in text  # a private metric


def test_an_attack_on_the_evaluators_module_gains_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = openevolve(tmp_path)
    attack = write(tmp_path, {"attack.py": ATTACK}) / "attack.py"
    code, text = said(capsys, f"problem.path={folder}", f"program={attack}")
    assert (code, "score      0.2" in text) == (0, True)


def test_another_metric(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = openevolve(tmp_path)
    code, text = said(capsys, f"problem.path={folder}", "program=initial", "metric=right")
    assert (code, "score      2.0" in text) == (0, True)
    text = EVALUATOR.replace('"combined_score": right', '"share": right')
    write(folder, {"evaluator.py": text})
    code, text = said(capsys, f"problem.path={folder}", "program=initial")
    assert code == 2
    assert "no metric 'combined_score'; give metric=NAME, one of: right, share" in text


STAGED = f"""{EVALUATOR}
def evaluate_stage1(path):
    return {{"combined_score": 0.7, "runs": True}}


def evaluate_stage2(path):
    if not evaluate(path)["right"]:
        raise ValueError("no number is right")
    return {{"combined_score": 0.6}}
"""


@pytest.mark.parametrize(
    ("program", "stage1", "code", "words"),
    [
        ("[0, 1, 4]", "combined_score", 0, ["score      0.6"]),
        ("[1, 4]", "combined_score", 0, ["score      0.7", "stage2_passed", "no number is right"]),
        ("[1, 4]", "share", 1, ["evaluator: ValueError: no number is right"]),
    ],
)
def test_a_program_on_which_a_later_stage_raises_keeps_its_score(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    program: str,
    stage1: str,
    code: int,
    words: list[str],
) -> None:
    """As OpenEvolve's ``_cascade_evaluate``; but one without a score has failed."""
    evaluator = STAGED.replace('"combined_score": 0.7', f'"{stage1}": 0.7')
    folder = openevolve(tmp_path, evaluator=evaluator)
    write(tmp_path, {"other.py": f"def squares(count):\n    return {program}\n"})
    found, text = said(capsys, f"problem.path={folder}", f"program={tmp_path / 'other.py'}")
    assert (found, [each for each in words if each not in text]) == (code, [])


def test_a_stage_that_raises_on_the_initial_program_is_to_be_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = openevolve(tmp_path, evaluator=STAGED.replace("if not evaluate", "if evaluate"))
    code, text = said(capsys, f"problem.path={folder}", "program=initial")
    assert code == 2
    assert "the initial program of squares fails: ValueError: no number is right" in text


def test_what_needs_the_programs_process_runs_together(tmp_path: Path) -> None:
    evaluator = EVALUATOR.replace(
        "found = program.squares(5)", "found = [3, 1]\n    program.squares(found)"
    )
    program = "def squares(values):\n    values[:] = [0, 1, 4, 9, 16]\n"
    problem = load_problem(openevolve(tmp_path, evaluator=evaluator, initial_program=program))
    found = rehearsed(problem, strict=False)
    assert found.judge is not None
    assert found.judge.kind is JudgeKind.TOGETHER
    with pytest.raises(UserError, match=r"changes in place .* give evaluation\.strict=false"):
        rehearsed(problem, strict=True)


def test_what_can_not_be_split_is_refused_when_asked(tmp_path: Path) -> None:
    evaluator = EVALUATOR.replace("program.squares(5)", "eval('program.squares(5)')")
    problem = load_problem(openevolve(tmp_path, evaluator=evaluator))
    with pytest.raises(UserError, match=r"evaluator\.py:12: the evaluator executes text"):
        rehearsed(problem, strict=True)
    assert rehearsed(problem, strict=False) != problem or problem.judge is not None


def test_a_folder_that_can_be_split_stays_so(tmp_path: Path) -> None:
    problem = load_problem(openevolve(tmp_path, initial_program=PROGRAM))
    found = rehearsed(problem, strict=True)
    assert found.judge is not None
    assert found.judge.kind is JudgeKind.SPLIT
    assert Setup.from_json(found.judge.setup).objects == ()


def test_the_rehearsal_finds_what_is_used_of_objects(tmp_path: Path) -> None:
    program = """
class Squares:
    def __init__(self, count):
        self.count = count
    def items(self):
        return [index * index for index in range(self.count)]
def squares(count):
    return Squares(count)
"""
    used = "made = program.squares(5)\n    found = made.items() if made.count else []"
    evaluator = EVALUATOR.replace("found = program.squares(5)", used)
    folder = openevolve(tmp_path, evaluator=evaluator, initial_program=program)
    found = rehearsed(load_problem(folder), strict=True)
    assert found.judge is not None
    assert Setup.from_json(found.judge.setup).objects == ("count", "items")


@pytest.mark.skipif(not SHARED, reason="BROOD_PEERS names no folder with other systems' problems")
@pytest.mark.parametrize("name", INITIAL)
def test_a_shipped_folder_scores_as_its_own_evaluator_says(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = said(capsys, f"problem.path={Path(SHARED) / name}", "program=initial")
    (line,) = [line for line in text.splitlines() if line.startswith("score")]
    low, high = INITIAL[name]
    assert code == 0
    assert low - 1e-6 <= float(line.split()[1]) <= high + 1e-6
