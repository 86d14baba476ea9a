"""A command that ends with the process that started it, together with all that it started.

`Guarded` runs the command below a process of this module, which the kernel tells when its starter
dies, by ``kill -9`` too. Then, and when it is closed, the command's process group is asked to end
(SIGTERM), and what is left of it some seconds later is killed.

Usage, by `Guarded`: python guard.py STARTER GRACE COMMAND..., the id of the process that starts it
and the seconds from the request to the kill first.
Imports nothing of the project. Does not cover a command whose processes leave their group.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_LOOK_SECONDS = 0.05


class Guarded:
    """Runs ``command``; a context manager."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        cwd: Path,
        log: Path,
        grace: float = 10.0,
    ) -> None:
        """Start it.

        Args:
            command: program and arguments.
            environment: what it has besides this process's own.
            cwd: its folder.
            log: file that takes both of its outputs.
            grace: seconds that it has to end, once it is asked to.
        """
        self._log = log
        with log.open("w") as output:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(os.getpid()), str(grace), *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **environment},
                cwd=cwd,
                start_new_session=True,  # Ctrl-C reaches it through `close` alone
            )

    @property
    def exit_code(self) -> int | None:
        """The command's exit code; None while it runs."""
        return self._process.poll()

    def wait(self, *, seconds: float) -> int:
        """Return the command's exit code.

        Raises:
            subprocess.TimeoutExpired: it still runs after ``seconds``.
        """
        return self._process.wait(timeout=seconds)

    def said(self) -> str:
        """Return the last lines that it wrote."""
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-15:])

    def close(self) -> None:
        """End it; returns when it has ended."""
        self._process.terminate()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def guard(starter: int, grace: float, command: Sequence[str]) -> int:
    """Run ``command`` until it ends, or this process is asked to end it; return its exit code."""
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda which, _: asked.append(which))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != starter:  # it died before
        return 1
    process = subprocess.Popen(command, start_new_session=True)
    while process.poll() is None and not asked:
        time.sleep(_LOOK_SECONDS)
    _end(process, grace)
    return process.wait()


def _end(process: subprocess.Popen[bytes], grace: float) -> None:
    """End what there is of the process's group."""
    deadline = time.monotonic() + grace
    try:
        os.killpg(process.pid, signal.SIGTERM)
        while time.monotonic() < deadline:
            process.poll()  # else the group would live on in what is left of the dead
            os.killpg(process.pid, 0)
            time.sleep(_LOOK_SECONDS)
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:  # all have ended
        return


if __name__ == "__main__":
    sys.exit(guard(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
