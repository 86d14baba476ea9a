"""Looking at processes from outside: who is there, and waiting until something holds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def children(pid: int) -> list[int]:
    """Return the processes that ``pid`` started, dead ones that nobody waited for among them."""
    found: list[int] = []
    with suppress(OSError):  # it has just ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # so has this thread
                found += map(int, (task / "children").read_text().split())
    return sorted(found)


def descendants(pid: int) -> list[int]:
    """Return all processes below ``pid``."""
    return [each for child in children(pid) for each in (child, *descendants(child))]


def below(folder: Path) -> list[Path]:
    """Return all paths below ``folder``, where some may be removed meanwhile."""
    return [Path(at, each) for at, *names in os.walk(folder) for each in (*names[0], *names[1])]


def entries(folder: str) -> int:
    """Return how many entries a folder has."""
    return sum(1 for _ in Path(folder).iterdir())


def zygotes(pid: int) -> list[int]:
    """Return the zygotes that process ``pid`` started."""
    return [each for each in children(pid) if b"engine.evaluation.zygote" in command(each)]


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def lives(pid: int) -> bool:
    """Return whether a process has not ended; one that nobody has waited for yet has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter if it goes before it is read
        return False


def eventually(condition: Callable[[], bool], seconds: float = 600.0) -> bool:
    """Return whether ``condition`` comes true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
