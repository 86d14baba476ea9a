"""Runs on a Ray cluster as a user starts them, for the tests that disturb them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from command import SECONDS
from hosts import Host

from engine.cluster.places import island_folder
from engine.core import Child, Migrant, UserError, Verdict
from engine.store import read_log

ISLANDS = 3
SLOW = Path(__file__).parents[2] / "bench/scale/slow_problem"
"""A problem of 200 ms a program, in which nothing is computed: runs that last, and load nothing."""
BUDGET = 90
ARGUMENTS = (
    *(f"problem.path={SLOW}", "model=mutation", "fill=none", f"islands.count={ISLANDS}"),
    *("islands.migrate_every=3", "islands.migrants=2", "budget.seconds=null", "search.k=4"),
    *(f"budget.candidates={BUDGET}", "evaluation.workers=1", "cluster=ray", "name=run"),
)


def begun(*arguments: str, on: Host | None = None) -> subprocess.Popen[str]:
    """Start a run, on this machine or on a host of a test's."""
    command = [sys.executable, "-m", "engine.run", *arguments]
    return subprocess.Popen(
        [*on.inside, *command] if on is not None else command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=on.environment if on is not None else None,
    )


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


def cpu_ticks(process: int) -> int:
    """How much a process has computed."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


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
    deadline = time.monotonic() + SECONDS
    while evaluated(folder) < candidates:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)


def finished(process: subprocess.Popen[str]) -> str:
    out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, out
    return out


def deaths(out: str) -> int:
    """How many workers a run said it lost, at work or while they started."""
    return out.count("a worker is lost") + out.count("a worker died while it started")
