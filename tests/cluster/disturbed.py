"""Runs on a Ray cluster as a user starts them, for the tests that disturb them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from engine.cluster.places import island_folder
from engine.core import Child, Migrant, UserError, Verdict
from engine.store import read_log

ISLANDS = 3
BUDGET = 90
ARGUMENTS = (
    *("problem=signal", "model=mutation", "fill=none", f"islands.count={ISLANDS}", "name=run"),
    *("islands.migrate_every=3", "islands.migrants=2", "budget.seconds=null", "search.k=4"),
    *(f"budget.candidates={BUDGET}", "evaluation.workers=1", "cluster=ray"),
)


def begun(*arguments: str) -> subprocess.Popen[str]:
    """Start a run."""
    command = [sys.executable, "-m", "engine.run", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def workers(driver: int, *, kind: str = "Worker") -> list[int]:
    """The processes that are actors of a kind in a driver's Ray cluster."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text()
                names[int(entry.name)] = (entry / "cmdline").read_bytes().split(b"\0")[0].decode()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])

    def is_below(process: int) -> bool:
        while process > 1 and process != driver:
            process = parents.get(process, 0)
        return process == driver

    return [
        each for each, name in names.items() if name.startswith(f"ray::{kind}") and is_below(each)
    ]


def texts(folder: Path, number: int) -> dict[str, str]:
    """The programs of an island's log that were evaluated or came from elsewhere."""
    events = [recorded.event for recorded in read_log(island_folder(folder, number))]
    judged = [each.candidate for each in events if isinstance(each, Verdict)]
    assert len(judged) == len(set(judged))
    programs = {each.id: each.program for each in events if isinstance(each, Child | Migrant)}
    return {name: programs[name].text for name in judged if programs.get(name) is not None}


def evaluated(folder: Path) -> int:
    """Candidates with a verdict, on all islands; those that came from elsewhere do not count."""
    found = 0
    for number in range(ISLANDS):
        try:
            found += sum(not name.startswith("i") for name in texts(folder, number))
        except UserError:  # not founded yet
            continue
    return found


def wait_for(process: subprocess.Popen[str], folder: Path, candidates: int) -> None:
    deadline = time.monotonic() + 300
    while evaluated(folder) < candidates:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)


def finished(process: subprocess.Popen[str]) -> str:
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0, out
    return out
