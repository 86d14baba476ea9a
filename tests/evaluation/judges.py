"""Problems with a command judge, as the tests make them: a folder, a script, and the verdict."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from engine.core import JUDGED, Direction, Judge, JudgeKind, Limits, Problem

MEBIBYTE = 1 << 20

SCORE = """
import json, sys
from pathlib import Path
program = Path(sys.argv[-1], "program.py").read_text()
"""
"""How a judge of these tests begins: it has the program's text."""


def problem_of(
    folder: Path,
    script: str,
    *,
    seconds: float = 30.0,
    memory_bytes: int = 256 * MEBIBYTE,
    **judge: Any,
) -> Problem:
    """Return a problem in ``folder`` whose judge is a Python script."""
    (folder / "judge.py").write_text(textwrap.dedent(script))
    given = {"kind": JudgeKind.COMMAND, "command": ("python3", "judge.py"), **judge}
    return Problem(
        name="judged",
        folder=folder,
        direction=Direction.MAXIMISE,
        statement="Score.",
        initial_program="1\n",
        entry_point="",
        stages=JUDGED,
        isolate_cases=False,
        limits=Limits(seconds=seconds, memory_bytes=memory_bytes),
        modules=(),
        known_scores=(),
        fingerprint="",
        judge=Judge(**given),
    )
