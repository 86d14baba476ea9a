"""Terminals that go, outputs that nobody takes, and processes that are stopped and continued."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import subprocess
import termios
from pathlib import Path

from command import (
    SECONDS,
    assert_complete,
    count_events,
    processes_in,
    read_summary,
    start,
    wait_until,
)
from events import PLAIN

SHORT = (*PLAIN, "budget.candidates=24", "name=run")
LONG = (*PLAIN, "budget.candidates=100000", "name=run")


def in_its_loop(process: subprocess.Popen[str], folder: Path) -> None:
    wait_until(lambda: count_events(folder) >= 12 or process.poll() is not None)
    assert process.poll() is None


def test_a_terminal_that_is_closed_ends_a_run_in_good_order(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = start(
        *(*LONG, f"runs={tmp_path}"),
        scratch=tmp_path / "scratch",
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    os.set_blocking(ours, False)

    def is_under_way() -> bool:
        with contextlib.suppress(OSError):  # or the run would wait for a reader
            os.read(ours, 1 << 16)
        return count_events(tmp_path / "run") >= 12 or process.poll() is not None

    wait_until(is_under_way)
    os.close(ours)  # the kernel sends SIGHUP, and every write fails from now on
    assert process.wait(timeout=SECONDS) == 130
    assert read_summary(tmp_path / "run")["ended_by"] is None
    assert processes_in(tmp_path / "scratch") == []
    assert [*(tmp_path / "scratch").iterdir()] == []


def test_a_reader_that_has_gone_does_not_end_a_run(tmp_path: Path) -> None:
    process = start(
        *(*SHORT, f"runs={tmp_path}"),
        scratch=tmp_path / "scratch",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().startswith("brood · ")
    process.stdout.close()  # as in ``| head -1``
    said = process.stderr.read()
    assert process.wait(timeout=SECONDS) == 0, said
    assert said.count("the output can't be written: Broken pipe") == 1
    assert "Traceback" not in said
    assert_complete(tmp_path / "run", candidates=24)


def test_nohup_outlives_the_hangup_and_a_full_disk_its_output(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        process = start(
            *(*PLAIN, "budget.candidates=300", "name=run", f"runs={tmp_path}"),
            scratch=tmp_path / "scratch",
            stdout=full,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),  # as nohup does
        )
    in_its_loop(process, tmp_path / "run")
    process.send_signal(signal.SIGHUP)
    _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said
    assert said.count("the output can't be written: No space left on device") == 1
    assert_complete(tmp_path / "run", candidates=300)
