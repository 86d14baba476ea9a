"""Runs the referee, and the candidate's process where they are split, without boxes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import engine
from engine.judge.setup import Setup

ROOT = str(Path(engine.__file__).parents[1])
SECONDS = 120  # on a machine that is busy with something else


def judge(
    setup: Setup,
    program: str,
    scratch: Path,
    *,
    split: bool = True,
    suffix: str = ".py",
    other: list[str] | None = None,
) -> dict[str, Any]:
    """Return the referee's JSON object for a program.

    Args:
        setup: of the problem.
        program: its text.
        scratch: a folder that both may write to.
        split: whether the program has a process of its own.
        suffix: of the program's file.
        other: the command of the program's process; None for the candidate's own.
    """
    path = scratch / "program" / f"program{suffix}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(program, encoding="utf-8")
    work = scratch / "work"
    work.mkdir(exist_ok=True)
    environment = {
        **os.environ, "PYTHONPATH": ROOT, "TMPDIR": str(work), "PYTHONDONTWRITEBYTECODE": "1"
    }  # fmt: skip
    command = [sys.executable, "-P", "-m", "engine.judge.referee", setup.to_json(), str(path)]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        candidate = None
        if split:
            command.append(str(ours.fileno()))
            candidate = subprocess.Popen(
                [
                    *(other or (sys.executable, "-P", "-m", "engine.judge.candidate")),
                    str(theirs.fileno()),
                ],
                pass_fds=[theirs.fileno()],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        referee = subprocess.Popen(
            command,
            pass_fds=[ours.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=work,
            text=True,
        )
    try:
        output, errors = referee.communicate(timeout=SECONDS)
    finally:
        for process in filter(None, (referee, candidate)):
            process.kill()
            process.wait()
    assert referee.returncode == 0, errors[-2000:]
    verdict: dict[str, Any] = json.loads(output.splitlines()[-1])
    return verdict
