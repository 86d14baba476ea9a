"""A log that another program has locked, and a run that two processes want."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from command import SECONDS, assert_complete, count_events, run, start, wait_until
from events import PLAIN

from engine.core import UserError
from engine.store import EventLog, read_log

CANDIDATES = 400  # it goes on when it is looked at


def begun(tmp_path: Path, *, candidates: int = CANDIDATES) -> subprocess.Popen[str]:
    process = start(
        *(*PLAIN, f"budget.candidates={candidates}", f"runs={tmp_path}", "name=run"),
        scratch=tmp_path / "scratch",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: count_events(tmp_path / "run") >= 12 or process.poll() is not None)
    return process


@pytest.mark.slow
def test_a_run_waits_for_a_program_that_locks_its_log(tmp_path: Path) -> None:
    process = begun(tmp_path)
    with closing(sqlite3.connect(tmp_path / "run" / "run.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(8.0)  # longer than SQLite itself waits
        assert process.poll() is None
        other.execute("ROLLBACK")
    _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said
    assert "waiting for" in said and "another program has it locked" in said and "is free" in said
    assert_complete(tmp_path / "run", candidates=CANDIDATES)


def test_ctrl_c_twice_ends_a_run_that_waits_for_a_lock(tmp_path: Path) -> None:
    process = begun(tmp_path, candidates=100_000)
    assert process.stderr is not None
    with closing(sqlite3.connect(tmp_path / "run" / "run.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        before = count_events(tmp_path / "run")
        while "waiting for" not in (line := process.stderr.readline()):
            assert line
        # Two that a starved process hears at once are one request; then there is another one.
        for patience in (1.5, 120.0, 120.0):
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=patience)
                break
        _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 130 and "Traceback" not in said
    assert count_events(tmp_path / "run") == before


def test_a_log_that_is_locked_is_not_called_damaged(recorded_run: Path) -> None:
    with closing(sqlite3.connect(recorded_run / "run.db", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")
        other.execute("PRAGMA user_version=9")
        with pytest.raises(UserError, match=r"run\.db is locked by another program; wait for it"):
            EventLog(recorded_run)
        other.execute("ROLLBACK")
    assert [*read_log(recorded_run)] != []


def test_of_two_that_resume_a_run_at_once_one_does(tmp_path: Path) -> None:
    process = begun(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with closing(sqlite3.connect(tmp_path / "run" / "run.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # whichever has the run waits until the other one came
        both = [
            start(
                f"resume={tmp_path / 'run'}",
                scratch=tmp_path / "scratch",
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            for _ in range(2)
        ]
        wait_until(lambda: any(each.poll() is not None for each in both))
        other.execute("ROLLBACK")
    said = [each.communicate(timeout=SECONDS)[1] for each in both]
    codes = [each.returncode for each in both]
    assert sorted(codes) == [0, 2], said
    refused = said[codes.index(2)]
    assert refused.startswith(f"error: another process works on {tmp_path / 'run'}; ")
    assert refused.count("\n") == 1
    assert_complete(tmp_path / "run", candidates=CANDIDATES)
    assert run(f"resume={tmp_path / 'run'}", scratch=tmp_path / "scratch").returncode == 0
