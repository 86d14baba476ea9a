"""The tutorial, as a reader follows it: its files are written and its commands run, in its order.

Blocks of ``bash`` are run. A block whose first line is a comment with a path is that file. What is
in blocks of ``sh`` takes longer than a test may, and is not run; other blocks show output.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import SECONDS, read_summary
from sybil import Document, Example, Sybil
from sybil.parsers.markdown import CodeBlockParser

from engine.check import main as check

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
_PATH = re.compile(r"(?:#|<!--) (gaps/[\w./]+)(?: -->)?\n")


class Reader:
    """Does in a folder what the tutorial says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.printed: list[str] = []
        self.written: list[str] = []

    def run(self, example: Example) -> None:
        """Run a block's commands, of which each has to succeed."""
        scratch = self.folder.parent / "scratch"
        scratch.mkdir(exist_ok=True)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", example.parsed],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=2 * SECONDS,
            check=False,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "TMPDIR": str(scratch),
            },
        )
        assert done.returncode == 0, f"line {example.line}: {done.stdout}{done.stderr}"
        self.printed.append(done.stdout)

    def write(self, example: Example) -> None:
        """Write a block to the file that its first line names."""
        path = _PATH.match(example.parsed)
        assert path is not None, f"line {example.line}: which file is that?"
        text = example.parsed[path.end() :] if path[1].endswith(".md") else example.parsed
        (self.folder / path[1]).write_text(text)
        self.written.append(path[1])

    def follow(self, page: Path) -> Document:
        """Do everything that a page says, in its order."""
        parsers = [CodeBlockParser("bash", self.run)]
        parsers += [CodeBlockParser(kind, self.write) for kind in ("yaml", "markdown", "python")]
        document = Sybil(parsers=parsers).parse(page)
        for example in document.examples():
            example.evaluate()
        return document


@pytest.mark.slow
def test_the_tutorial_is_true(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    reader = Reader(folder)
    reader.follow(TUTORIAL)
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
