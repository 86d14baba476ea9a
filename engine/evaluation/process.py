"""One zygote, seen from the evaluator's side: start, wait until it is warm, kill.

Does not cover: what to do when a zygote is lost (``lane``) and what is said to it once it is warm
(``native/workers.cpp``).
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import engine
from engine.core import Problem
from engine.evaluation.warmth import Warmth
from engine.evaluation.zygote import Setup

START_SECONDS = 120.0
"""How long a zygote may take to import its libraries, on a busy machine with a cold disk."""

_STALL_SECONDS = 5
_REQUEST = struct.Struct("@II")  # as in native/protocol.hpp
_LOG_CHARACTERS = 500
_ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "MALLOC_ARENA_MAX",
)


class NotStarted(Exception):
    """A zygote did not come up; the text says why."""


class ZygoteProcess:
    """A zygote. It ends with the thread that made it, and shares that thread's core."""

    def __init__(
        self,
        *,
        problem: Problem,
        inputs: Sequence[Sequence[int]],
        results: Sequence[int],
        folder: Path,
        warmth: Warmth,
    ) -> None:
        """Start the process, without waiting for it.

        Args:
            problem: what its programs are for.
            inputs: for each stage, a descriptor for each process with the cases that it runs.
            results: descriptors of the memory for results.
            folder: where it runs, and beside which its log lies.
            warmth: what it makes ready before its first program.

        Raises:
            OSError: no process could be started.
        """
        self._stage = len(problem.stages) - 1
        self._rehearsal = warmth.rehearsal.encode(errors="surrogatepass")
        self._log = folder.with_suffix(".log")
        self._socket, theirs = socket.socketpair()
        setup = Setup(
            parent=os.getpid(),
            connection=theirs.fileno(),
            entry_point=problem.entry_point,
            inputs=[list(each) for each in inputs],
            results=list(results),
            isolate_cases=problem.isolate_cases,
            seconds=problem.limits.seconds,
            memory_bytes=problem.limits.memory_bytes,
            modules=list(warmth.modules),
            lazy=list(warmth.lazy),
        )
        try:
            with theirs, self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    [
                        *(sys.executable, "-P", "-s", "-u", "-m", "engine.evaluation.zygote"),
                        json.dumps(dataclasses.asdict(setup)),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=folder,
                    env=_environment(folder),
                    pass_fds=[theirs.fileno(), *results, *itertools.chain(*inputs)],
                    # Its children stay in its group; Ctrl-C at the terminal is for us alone.
                    start_new_session=True,
                )
        except OSError:
            self._socket.close()
            raise

    @property
    def connection(self) -> int:
        """Descriptor of the socket to the zygote."""
        return self._socket.fileno()

    def wait_ready(self) -> Mapping[str, str]:
        """Wait until the zygote is warm; return the walls that it lacks, each with the reason.

        It goes on to rehearse; the first request waits for that.

        Raises:
            NotStarted: it ended instead, or took longer than `START_SECONDS`.
        """
        self._socket.settimeout(START_SECONDS)
        try:
            with self._socket.makefile("rb") as reader:
                greeting = reader.readline()
        except TimeoutError as error:
            raise NotStarted("it took too long") from error
        except OSError as error:
            raise NotStarted(str(error)) from error
        if not greeting:
            raise NotStarted(self._last_words())
        # From here on native code waits; it can't hang in the middle of a message either.
        self._socket.settimeout(None)
        for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            self._socket.setsockopt(
                socket.SOL_SOCKET, option, struct.pack("@ll", _STALL_SECONDS, 0)
            )
        missing: dict[str, str] = json.loads(greeting)
        try:
            self._socket.sendall(_REQUEST.pack(self._stage, len(self._rehearsal)) + self._rehearsal)
        except OSError as error:
            raise NotStarted(str(error)) from error
        return missing

    def kill(self) -> None:
        """Kill the zygote and its child; may be called from any thread, and again."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def close(self) -> None:
        """Kill the zygote and close the connection to it."""
        self.kill()
        self._socket.close()

    def _last_words(self) -> str:
        log = self._log.read_text(errors="replace")
        return " ".join(log.split())[-_LOG_CHARACTERS:] or "it ended without a word"


def _environment(folder: Path) -> dict[str, str]:
    """Return a zygote's whole environment: one thread, equal hashes, and none of our secrets."""
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
