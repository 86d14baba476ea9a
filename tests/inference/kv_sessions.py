"""Processes that use a model with an LMCache server, one after the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SESSION = Path(__file__).with_name("kv_session.py")
SECONDS = 900.0
"""How long one process may take on a machine that is busy with something else."""
SHARED_MEMORY = Path("/dev/shm")


def session(folder: Path, **given: Any) -> dict[str, Any]:
    """Return what a process that uses the model saw; nothing of it may be left.

    Args:
        folder: of the disk tier.
        given: arguments of ``main`` in ``kv_session.py``.
    """
    before = segments()
    done = subprocess.run(
        [sys.executable, str(SESSION), json.dumps({"folder": str(folder), **given})],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, "BROOD_TEST": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    assert processes(folder) == []
    assert segments() == before
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


def segments() -> set[str]:
    return {path.name for path in SHARED_MEMORY.iterdir() if "brood" in path.name}


def processes(folder: Path) -> list[int]:
    """Return the living processes that have ``folder`` in their environment, this one excepted."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal() or int(process.name) == os.getpid():
            continue
        try:
            alive = (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
            belongs = f"BROOD_TEST={folder}\0".encode() in (process / "environ").read_bytes()
        except OSError:
            continue  # it ended, or belongs to somebody else
        if alive and belongs:
            found.append(int(process.name))
    return found


def assert_complete(seen: dict[str, Any]) -> None:
    """Assert that every child came and was written to its end."""
    assert len(seen["answers"]) == 5
    for answer in seen["answers"]:
        assert answer["generated"] == [12] * 4
        assert answer["reasons"] == ["length"] * 4
