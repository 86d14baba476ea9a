"""The process behind a lane, as the lane sees it: started, waited for until it is warm, killed.

Does not cover what it does: ``zygote`` for programs, ``box`` for judges.
"""

import contextlib
import dataclasses
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import engine

START_SECONDS = 120.0
"""How long it may take to import its libraries, on a busy machine with a cold disk."""

_STALL_SECONDS = 5
_LOG_CHARACTERS = 500
_CHUNK = 1 << 16
_TRIES = 20  # at the weight of a session
_ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "MALLOC_ARENA_MAX",
)


class NotStarted(Exception):
    """A process did not come up; the text says why."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServerSetup:
    """What every such process is told.

    Attributes:
        parent: the process that started it, with which it ends.
        connection: the socket to the thread that it serves; each process has its own.
        seconds: wall seconds for the evaluation of a program.
        memory_bytes: memory for it, beyond what the warm process has itself.
        modules: what to import before any program runs.
        idle: whether programs run only when nothing else wants their core.
    """

    parent: int
    connection: int = -1
    seconds: float
    memory_bytes: int
    modules: list[str]
    idle: bool = False


def give_way() -> None:
    """Let this process and its children have a core only when nobody else wants it.

    Where the kernel groups processes by session, a session's own weight counts first.
    """
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    for _ in range(_TRIES):
        try:
            Path("/proc/self/autogroup").write_text("19")
            return
        except BlockingIOError:  # for all but root the kernel takes one in a tenth of a second
            time.sleep(0.1)
        except OSError:  # no such file: it does not group them
            return


def die_first() -> None:
    """Have the kernel end this process and its children, where memory runs out, before all others.

    A candidate that is killed costs one verdict, a zygote a second or two, and the run itself the
    model that it has loaded.
    """
    with contextlib.suppress(OSError):  # the kernel keeps no such score
        Path("/proc/self/oom_score_adj").write_text("1000")


class Server:
    """The process. It ends with the thread that made it, and shares that thread's core."""

    def __init__(
        self, module: str, setup: ServerSetup, folder: Path, *, descriptors: Iterable[int]
    ) -> None:
        """Start the process, without waiting for it; it gets its end of ``socket``.

        Args:
            module: what it runs.
            setup: what it is told, but for its connection.
            folder: where it runs, and beside which its log lies.
            descriptors: that it gets, under the numbers that they have here.

        Raises:
            OSError: no process could be started.
        """
        self._log = folder.with_suffix(".log")
        self.socket, theirs = socket.socketpair()
        setup = dataclasses.replace(setup, connection=theirs.fileno())
        try:
            # Not an argument: a problem's modules may be more than one may hold.
            with theirs, self._log.open("wb") as log, tempfile.TemporaryFile() as told:
                told.write(json.dumps(dataclasses.asdict(setup)).encode())
                told.seek(0)
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-s", "-u", "-m", module],
                    stdin=told,
                    stdout=log,
                    stderr=log,
                    cwd=folder,
                    env=_environment(folder),
                    pass_fds=[setup.connection, *descriptors],
                    # Its children stay in its group; Ctrl-C at the terminal is for us alone.
                    start_new_session=True,
                )
        except OSError:
            self.socket.close()
            raise

    def wait_ready(self) -> Mapping[str, str]:
        """Wait until it is warm; return the walls that it lacks, each with the reason.

        Raises:
            NotStarted: it ended instead.
            OSError: it took longer than `START_SECONDS`, or the connection to it broke.
        """
        self.socket.settimeout(START_SECONDS)
        with self.socket.makefile("rb") as reader:
            greeting = reader.readline()
        if not greeting:
            said = " ".join(self._log.read_text(errors="replace").split())
            raise NotStarted(said[-_LOG_CHARACTERS:] or "it ended without a word")
        # From here on native code waits; it can't hang in the middle of a message either.
        self.socket.settimeout(None)
        stall = struct.pack("@ll", _STALL_SECONDS, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, stall)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, stall)
        missing: dict[str, str] = json.loads(greeting)
        return missing

    def kill(self) -> None:
        """Kill it and its children; may be called from any thread, and again."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def read_setup() -> dict[str, Any]:
    """Return what this process was told on its standard input, and leave that empty."""
    text = b"".join(iter(lambda: os.read(0, _CHUNK), b""))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    setup: dict[str, Any] = json.loads(text)
    return setup


def _environment(folder: Path) -> dict[str, str]:
    """Return its whole environment: one thread, equal hashes, and none of our secrets."""
    inherited = {key: os.environ[key] for key in ("LD_LIBRARY_PATH",) if key in os.environ}
    return {
        **inherited,
        **dict.fromkeys(_ONE_THREAD, "1"),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": str(Path(engine.__file__).parents[1]),
        "PYTHONUTF8": "1",
    }
