"""The tutorial, as a reader follows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import read_summary
from reader import ROOT, Reader

from engine.check import main as check


@pytest.mark.slow
def test_the_tutorial_is_true(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "reader"
    reader = Reader(folder)
    reader.follow(ROOT / "docs" / "tutorial.md", marks=("", "slow"))
    assert [path.removeprefix("gaps/") for path in reader.written] == [
        *("problem.yaml", "statement.md", "initial.py", "evaluator.py"),
        "cheats/smooths_everything.py",
    ]
    said = "".join(reader.printed)
    assert "score      0.255434702769916\n" in said
    assert "0 errors, 0 warnings" in said
    for run in ("packing", "by-chance"):
        summary = read_summary(folder / "runs" / run)
        assert summary["best_score"] > summary["initial_score"]
    declaration = folder / "gaps" / "problem.yaml"
    declaration.write_text(declaration.read_text().replace("maximise", "minimise"))
    assert check([f"problem.path={folder / 'gaps'}"]) == 2
    assert f"error: {declaration}:5: the target is 0.95, no better" in capsys.readouterr().err
