"""One worker process, seen from the evaluator's side: start, ask, kill.

Does not cover: what to do when a worker is lost (``lane``) and what a result means (``verdict``).
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import engine
from engine.core import Case
from engine.evaluation import tree, wire
from engine.evaluation.contract import packed_size
from engine.evaluation.wire import Lost, Observation, Setup

GRACE_SECONDS = 1.0
"""How much longer than the program's limit a worker may take to answer."""
START_SECONDS = 120.0
"""How long a worker may take to import its libraries, on a busy machine with a cold disk."""

_LOG_CHARACTERS = 500
_ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "MALLOC_ARENA_MAX",
)


class WorkerProcess:
    """A fork server in a fresh interpreter. All methods but `kill` belong to one thread.

    The worker ends with the thread that made it, so that thread has to live as long.
    """

    def __init__(self, *, setup: Setup, folder: Path) -> None:
        """Start the process, without waiting for it; ``folder`` is where programs run."""
        self._seconds = setup.seconds
        self._most = _most_bytes(setup.cases, isolated=setup.isolate_cases)
        self._log = folder.with_suffix(".log")
        self._sock, theirs = socket.socketpair()
        with theirs, self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-s", "-u", "-m", "engine.evaluation.worker"),
                    *(str(os.getpid()), str(theirs.fileno())),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=_environment(folder),
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C at the terminal is for the main process alone
            )
        self._setup: Setup | None = setup

    def wait_ready(self) -> None:
        """Hand over the problem on the first call and wait until the worker is warm.

        Raises:
            Lost: the worker ended instead; the text has the end of what it printed.
            TimeoutError: it took longer than `START_SECONDS`.
        """
        if self._setup is None:
            return
        deadline = time.monotonic() + START_SECONDS
        try:
            wire.send_frame(self._sock, *wire.encode_setup(self._setup), deadline=deadline)
            wire.receive_frame(self._sock, deadline=deadline, most=0)
        except Lost as error:
            log = self._log.read_text(errors="replace").strip()
            raise Lost(" ".join(log.split())[-_LOG_CHARACTERS:] or str(error)) from error
        self._setup = None

    def run(self, program: str) -> Observation:
        """Have one program run, in a worker that is ready.

        Raises:
            Lost: the worker ended, or answered with something malformed.
            TimeoutError: it did not answer within the time limit and `GRACE_SECONDS`.
        """
        deadline = time.monotonic() + self._seconds + GRACE_SECONDS
        wire.send_frame(self._sock, {"program": program}, deadline=deadline)
        header, body = wire.receive_frame(self._sock, deadline=deadline, most=self._most)
        return wire.decode_observation(header, body)

    def kill(self) -> None:
        """Kill the worker and all below it; may be called from any thread, and again."""
        if self._process.poll() is None:
            tree.kill_tree(self._process.pid)
            self._process.wait()

    def close(self) -> None:
        """Kill the worker and close the connection to it."""
        self.kill()
        self._sock.close()


def _most_bytes(cases: list[Case], *, isolated: bool) -> int:
    """Return the most bytes that the results of all cases can have, one slack read included."""
    children = len(cases) if isolated else 1
    return sum(map(packed_size, cases)) + children * (wire.RAISED_BYTES + (1 << 16))


def _environment(folder: Path) -> dict[str, str]:
    """Return a worker's whole environment: one thread, equal hashes, and none of our secrets."""
    root = str(Path(engine.__file__).parents[1])
    inherited = {key: os.environ[key] for key in ("LD_LIBRARY_PATH",) if key in os.environ}
    return {
        **inherited,
        **dict.fromkeys(_ONE_THREAD, "1"),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": root,
        "PYTHONUTF8": "1",
    }
