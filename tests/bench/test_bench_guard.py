from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.guard import Guarded

ROOT = Path(__file__).resolve().parents[2]
# Starts a child of its own, writes both ids, and waits.
FAMILY = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(os.getpid(), child.pid, flush=True)
time.sleep(600)
"""
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), flush=True)
time.sleep(600)
"""


def _within(seconds: float, holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.02)
    return holds()


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _ids(log: Path) -> list[int]:
    assert _within(60, lambda: log.exists() and log.read_text().endswith("\n"))
    return [int(each) for each in log.read_text().split()]


def _start(program: str, log: Path, **environment: str) -> Guarded:
    command = [sys.executable, "-c", program]
    return Guarded(command, environment=environment, cwd=log.parent, log=log, grace=0.5)


def test_a_command_ends_by_itself(tmp_path: Path) -> None:
    program = "import os, sys; print('said', os.environ['WORD'], os.getcwd()); sys.exit(7)"
    with _start(program, tmp_path / "log", WORD="it") as process:
        assert process.wait(seconds=60) == 7
        assert process.exit_code == 7
        assert process.said() == f"said it {tmp_path}"


def test_only_the_last_lines_are_said(tmp_path: Path) -> None:
    with _start("print(*range(100), sep='\\n')", tmp_path / "log") as process:
        process.wait(seconds=60)
        assert process.said().splitlines() == [str(each) for each in range(85, 100)]


def test_closing_ends_a_command_and_what_it_started(tmp_path: Path) -> None:
    with _start(FAMILY, tmp_path / "log") as process:
        ids = _ids(tmp_path / "log")
        assert process.exit_code is None
        assert all(map(_lives, ids))
    assert _within(60, lambda: not any(map(_lives, ids)))


def test_what_outlives_a_command_is_ended(tmp_path: Path) -> None:
    without_waiting = FAMILY.rpartition("time.sleep")[0]
    with _start(without_waiting, tmp_path / "log") as process:
        _, child = _ids(tmp_path / "log")
        assert process.wait(seconds=60) == 0
        assert _within(60, lambda: not _lives(child))


def test_a_command_that_ignores_the_request_is_killed(tmp_path: Path) -> None:
    process = _start(STUBBORN, tmp_path / "log")
    (pid,) = _ids(tmp_path / "log")
    process.close()
    assert not _lives(pid)


def test_a_command_dies_with_its_starter(tmp_path: Path) -> None:
    starter = f"""
import sys, time
from pathlib import Path
from bench.guard import Guarded
log = Path({str(tmp_path / "log")!r})
process = Guarded([sys.executable, "-c", {FAMILY!r}], environment={{}}, cwd=log.parent, log=log)
time.sleep(600)
"""
    process = subprocess.Popen([sys.executable, "-c", starter], cwd=ROOT)
    try:
        ids = _ids(tmp_path / "log")
        os.kill(process.pid, signal.SIGKILL)
        assert _within(60, lambda: not any(map(_lives, ids)))
    finally:
        process.kill()
        process.wait()
