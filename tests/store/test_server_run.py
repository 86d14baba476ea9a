"""A run whose events a server has: it begins, is killed, goes on, and is reported on."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import SECONDS
from servers import Server

from engine.core import UserError
from engine.report.analysis import read_runs
from engine.store import Child, EventLog, Verdict, read_event, read_log

ARGUMENTS = ("problem=signal", "model=mutation", "fill=none", "budget.seconds=null", "name=a-run")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "engine.run", *arguments]


def programs(folder: Path) -> dict[str, str]:
    """The programs of a run that were evaluated, by their ids."""
    every = [recorded.event for recorded in read_log(folder)]
    judged = {each.candidate for each in every if isinstance(each, Verdict)}
    return {
        each.id: each.program.text
        for each in every
        if isinstance(each, Child) and each.program is not None and each.id in judged
    }


def test_a_run_at_a_server_is_killed_and_goes_on_as_one_in_a_file(
    tmp_path: Path, server: Server
) -> None:
    runs = f"runs={tmp_path}"
    process = subprocess.Popen(
        command(*ARGUMENTS, runs, "budget.candidates=300", f"store={server.url}"),
        stdout=subprocess.DEVNULL,
    )
    folder = tmp_path / "a-run"
    deadline = time.monotonic() + SECONDS
    while not folder.exists() or len(programs(folder)) < 10:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    # The attempts below take two seconds, and the run could come to its end meanwhile.
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(UserError, match="another process works on"):
        EventLog(folder)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (folder / "run.db").exists() and (folder / "run.url").is_file()
    subprocess.run(command(f"resume={folder}"), check=True, stdout=subprocess.DEVNULL)
    in_file = tmp_path / "in-a-file"
    subprocess.run(
        command(*ARGUMENTS[:-1], "name=in-a-file", runs, "budget.candidates=300"),
        check=True,
        stdout=subprocess.DEVNULL,
    )
    found = programs(folder)
    assert len(found) == 300 and found == programs(in_file)
    (record,) = read_runs([folder])
    name = next(iter(found))
    assert name in record.totals
    child = read_event(folder, Child, name)
    assert isinstance(child, Child) and child.program is not None
    assert child.program.text == found[name]
