"""``python -m engine.check`` of a whole folder: what it finds, and how it ends."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from sorting import INITIAL, MakeProblem

from engine.check import main
from engine.new import new_problem

CHEAT = "def order(values):\n    return [1.0, 2.0, 3.0, 5.0], 0.0\n"
BELIEVES = "return {'score': 3.0 + min(claim, 0.5)}"
SCREENS = """

def screens():
    name, cases_ = "CHEAP", tuple(cases())
    return [Stage(name=name, cases=cases_, score=lambda outputs: {"score": FORMULA})]
"""


def test_a_new_problem_is_clean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = new_problem("mine", parent=tmp_path)
    assert main([f"problem.path={folder}", "runs=2"]) == 0
    out, err = capsys.readouterr()
    *found, total = out.splitlines()
    assert err == "" and total == f"{folder}: 0 errors, 0 warnings"
    assert all(line.startswith("ok ") for line in found), out
    checks = {line.split()[1] for line in found}
    assert checks == {
        *("initial", "noise", "speed", "memory", "walls", "target", "statement", "isolation"),
        *("constants", "claims", "state", "cheats"),
    }


def test_a_problem_that_can_be_gamed(made: MakeProblem, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(BELIEVES).folder
    (folder / "cheats").mkdir()
    (folder / "cheats" / "claims.py").write_text(INITIAL.replace("0.0", "1e9"))
    (folder / "cheats" / "broken.py").write_text("def order(values:\n")
    (folder / "cheats" / "renamed.py").write_text(INITIAL.replace("order", "sort"))
    (folder / "cheats" / "fails.py").write_text(INITIAL.replace("values, 0.0", "1 / 0"))
    assert main([f"problem.path={folder}", "runs=2"]) == 1
    out = capsys.readouterr().out.splitlines()
    cheats, score = folder / "cheats", f"{folder / 'evaluator.py'}:13"
    assert out[-1].startswith(f"{folder}: ")
    errors = [line for line in out if line.startswith("error")]
    assert any(f"claims     {score}: the score believes 'claim'" in line for line in errors)
    (gained,) = [line for line in errors if str(cheats) in line]
    assert f"{cheats / 'claims.py'}: it scores 3.5, better than the initial" in gained
    assert f"refuse that in {score}" in gained
    warnings = [line for line in out if line.startswith("warning") and str(cheats) in line]
    assert [line.split()[2] for line in warnings] == [
        f"{cheats / 'broken.py'}:",
        f"{cheats / 'renamed.py'}:",
    ]
    assert any("nothing is gained by fails" in line for line in out)


def test_a_problem_of_several_files(several: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"problem.path={several}", "runs=2"]) == 0
    lines = {line.split()[1]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["statement"].startswith("ok") and "names order and its arguments" in str(lines)
    assert lines["memory"].startswith("ok")  # without what a process holds that does nothing


@pytest.mark.parametrize(
    ("formula", "level", "words"),
    [
        ("score(outputs)['score']", "ok", "with a correlation of 1.00"),
        ("-score(outputs)['score']", "warning", "with a correlation of -1.00; let it see more"),
    ],
)
def test_cheap_stages(
    made: MakeProblem, formula: str, level: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = made("return {'score': float(ordered[0])}")
    initial = INITIAL.replace("values, 0.0", "values * scale, 0.0")
    initial = initial.replace("    return", "    scale = 0.5 + 0.25 * 0.75\n    return")
    (problem.folder / "initial.py").write_text(initial)
    with (problem.folder / "evaluator.py").open("a") as file:
        file.write(SCREENS.replace("FORMULA", formula))
    main([f"problem.path={problem.folder}", "runs=2"])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if " stages " in line]
    assert line.startswith(level) and words in line, line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give one of problem=NAME"),
        (["problem=nonsense"], "unknown problem 'nonsense'; valid problems: circle_packing"),
        (["problem.path=/no/such/folder"], "does not exist"),
        (["problem=signal", "runs=0"], "runs is '0'; it must be a whole number above 0"),
        (["problem=signal", "seed=1"], "valid keys: problem, problem.path, data, metric, runs"),
        (["problem=signal", "data=/no/such"], "/no/such does not exist"),
        (["problem="], "problem= has no value"),
    ],
)
def test_bad_input(arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    out, err = capfd.readouterr()
    assert out == "" and err.count("\n") == 1 and message in err


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("circle_packing", "eplb", "signal_causal"),
        pytest.param(
            "matrix_product",
            marks=pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler"),
        ),
    ],
)
def test_the_shipped_cheats_gain_nothing(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"problem={name}", "runs=3"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if " cheats " in line]
    assert line.startswith("ok")
