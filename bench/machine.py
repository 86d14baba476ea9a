"""What a process and those below it hold of the machine, read from Linux's ``/proc``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GROWTH = 0.01
"""Share of its resident memory by which a process may grow before that is a leak."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """What one process holds: resident bytes, open descriptors, and its command line."""

    resident: int
    descriptors: int
    command: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Resources:
    """What this process (``own``) and those below it (by id) hold, and the files they made."""

    own: Held
    processes: Mapping[int, Held]
    files: frozenset[str]

    def summary(self) -> dict[str, Any]:
        """Return the figures that are compared."""
        return {
            "resident_mb": round(self.own.resident / 2**20, 2),
            "descriptors": self.own.descriptors,
            "processes": len(self.processes),
            "zygotes_resident_mb": [
                round(held.resident / 2**20, 2) for held in self.processes.values()
            ],
            "zygotes_descriptors": [held.descriptors for held in self.processes.values()],
            "files": len(self.files),
        }


def look(folder: Path) -> Resources:
    """Return what is held now; ``folder`` is where files may come to lie."""
    me = os.getpid()
    own = _held(me)
    assert own is not None
    below = {pid: held for pid in sorted(_below(me)) if (held := _held(pid)) is not None}
    return Resources(own=own, processes=below, files=frozenset(map(str, folder.rglob("*"))))


def leaks(before: Resources, after: Resources) -> list[str]:
    """Return a line for each thing of which there is more after than before."""
    found = []
    if len(after.processes) > len(before.processes):
        found.append(f"{len(before.processes)} processes became {len(after.processes)}")
    if after.own.descriptors > before.own.descriptors:
        found.append(f"{before.own.descriptors} open descriptors became {after.own.descriptors}")
    found += [f"file {name} is new" for name in sorted(after.files - before.files)]
    if _grew(before.own, after.own):
        found.append(_growth("this process", before.own, after.own))
    # A zygote that was replaced has no earlier self; it is held against the largest one then.
    largest = max(before.processes.values(), key=lambda held: held.resident, default=None)
    for pid, held in after.processes.items():
        earlier = before.processes.get(pid, largest)
        if earlier is None:
            continue
        if _grew(earlier, held):
            found.append(_growth(f"process {pid}", earlier, held))
        if held.descriptors > earlier.descriptors:
            found.append(
                f"process {pid}: {earlier.descriptors} descriptors became {held.descriptors}"
            )
    return found


def strays(now: Resources) -> list[str]:
    """Return a line for each process that has a zygote's command line but is not below this one."""
    commands = {held.command for held in now.processes.values() if held.command}
    found = []
    for pid in _all():
        if pid != os.getpid() and pid not in now.processes:
            held = _held(pid)
            if held is not None and held.command in commands:
                found.append(f"process {pid} got away")
    return found


def _grew(before: Held, after: Held) -> bool:
    return after.resident >= before.resident * (1 + GROWTH)


def _growth(name: str, before: Held, after: Held) -> str:
    return f"{name} grew from {before.resident >> 10} to {after.resident >> 10} KiB"


def _held(pid: int) -> Held | None:
    """Return what a process holds; None if it is gone, or only its exit code is left."""
    process = Path(f"/proc/{pid}")
    try:
        pages = int((process / "statm").read_text().split()[1])
        command = (process / "cmdline").read_bytes()
        # Listing this process's own takes a descriptor itself, which is closed again.
        descriptors = sum(1 for _ in (process / "fd").iterdir()) - (pid == os.getpid())
    except OSError:
        return None
    return Held(
        resident=pages * os.sysconf("SC_PAGESIZE"), descriptors=descriptors, command=command
    )


def _all() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _below(root: int) -> set[int]:
    """Return the processes below ``root``, zombies included."""
    parents: dict[int, int] = {}
    for pid in _all():
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        parents[pid] = int(stat.rpartition(")")[2].split()[1])
    found: set[int] = set()
    fresh = {root}
    while fresh:
        fresh = {pid for pid, parent in parents.items() if parent in fresh} - found
        found |= fresh
    return found
