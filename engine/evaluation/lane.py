"""One lane of evaluation: a pinned thread's own zygote and memory, and what it makes of a run.

The native thread (``native/workers.cpp``) calls `connect`, `drop` and `judge`; nobody else does.
It is also the one that talks to a zygote once that is warm.
"""

import contextlib
import dataclasses
import itertools
import json
import logging
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path

import engine
from engine.core import Evaluation, Problem
from engine.evaluation._native import Observation, Outcome
from engine.evaluation.contract import packed_size
from engine.evaluation.verdict import crashed, groups, judge
from engine.evaluation.warmth import Warmth
from engine.evaluation.wire import RAISED_BYTES, ResultMemory
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
_log = logging.getLogger(__name__)


class NotStarted(Exception):
    """A zygote did not come up; the text says why."""


class Lane:
    """Keeps one zygote alive. All methods but `stop` and `wait_walls` belong to one thread."""

    def __init__(
        self,
        problem: Problem,
        inputs: list[list[int]],
        folder: Path,
        warmth: Warmth,
        deliver: Callable[[int, Evaluation], None],
    ) -> None:
        """Make a lane without a zygote.

        Args:
            problem: what its programs are for.
            inputs: for each stage, a descriptor for each process with the cases that it runs.
            folder: where its zygotes run, and beside which their log lies.
            warmth: what they make ready.
            deliver: takes a task's ticket and the verdict.
        """
        self._problem = problem
        self._folder = folder
        self._deliver = deliver
        every = [group for stage in problem.stages for group in groups(problem, stage)]
        most_bytes = 1 + max(RAISED_BYTES, *(sum(map(packed_size, group)) for group in every))
        self._results = [ResultMemory(most_bytes) for _ in range(max(map(len, inputs)))]
        self._setup = Setup(
            parent=os.getpid(),
            connection=-1,  # each zygote has its own
            entry_point=problem.entry_point,
            inputs=inputs,
            results=[each.fd for each in self._results],
            isolate_cases=problem.isolate_cases,
            seconds=problem.limits.seconds,
            memory_bytes=problem.limits.memory_bytes,
            modules=list(warmth.modules),
            lazy=list(warmth.lazy),
        )
        rehearsal = warmth.rehearsal.encode(errors="surrogatepass")
        self._rehearsal = _REQUEST.pack(len(problem.stages) - 1, len(rehearsal)) + rehearsal
        self._lock = threading.Lock()
        self._stopped = False
        self._zygote: _Zygote | None = None
        self._first: Future[Mapping[str, str]] = Future()  # the walls that the first zygote lacks
        self.record: Callable[[float], None] = lambda seconds: None
        """Called after each verdict with the wall seconds of the program's run."""
        self.strict = False
        """Whether a zygote that lacks a wall is as good as none."""

    def connect(self) -> int:
        """Return the descriptor of a socket to a warm zygote, starting one if there is none.

        A zygote that was just started goes on to rehearse; the first program waits for that.

        Raises:
            NotStarted: there is none to be had; the text says why.
        """
        if self._zygote is not None:
            return self._zygote.socket.fileno()
        try:
            with self._lock:
                if self._stopped:
                    raise NotStarted("it was closed")
                zygote = self._zygote = _Zygote(self._setup, self._folder)
            missing = zygote.wait_ready()
            zygote.socket.sendall(self._rehearsal)
            if not self._first.done():
                self._first.set_result(missing)
            if self.strict and missing:
                raise NotStarted(f"its sandbox lacks a wall, {', '.join(missing)}")
        except Exception as error:  # whoever waits for the first zygote must get an answer
            self.drop()
            why = "it was closed" if self._stopped else f"a zygote did not start: {error}"
            refusal = NotStarted(f"evaluator: {why}")
            if not self._stopped:
                _log.warning("%s", refusal)
            if not self._first.done():
                self._first.set_exception(refusal)
            raise refusal from error
        return zygote.socket.fileno()

    def drop(self) -> None:
        """Give the zygote up, if there is one."""
        with self._lock:
            if self._zygote is not None:
                self._zygote.kill()
                self._zygote.socket.close()
            self._zygote = None

    def judge(self, ticket: int, stage: int, observation: Observation) -> None:
        """Deliver the verdict on one program; always delivers one."""
        began = time.perf_counter()
        try:
            evaluation = self._evaluation(stage, observation)
        except BaseException as error:  # whoever waits for this verdict must get one
            _log.exception("the evaluator failed")
            evaluation = crashed(f"evaluator: {type(error).__name__}: {error}")
        self.record(evaluation.seconds + time.perf_counter() - began)
        self._deliver(ticket, evaluation)

    def wait_walls(self) -> Mapping[str, str]:
        """Wait for the first zygote; return the walls that it lacks, each with the reason.

        Raises:
            NotStarted: there was none to be had; the text says why.
        """
        return self._first.result()

    def stop(self) -> None:
        """Kill the zygote for good, from any thread."""
        with self._lock:
            self._stopped = True
            if self._zygote is not None:
                self._zygote.kill()

    def close(self) -> None:
        """Free the memory for results; the thread has ended."""
        self.drop()
        for result in self._results:
            result.close()

    def _evaluation(self, stage: int, observation: Observation) -> Evaluation:
        if observation.outcome is Outcome.LOST:
            reason = observation.output.decode(errors="replace")
            if self._stopped:
                reason = "evaluator: it was closed"
            return crashed(reason or "its zygote was lost twice")
        results = [each.read() for each in self._results[: len(observation.seconds)]]
        return judge(self._problem, self._problem.stages[stage], observation, results)


class _Zygote:
    """A zygote's process. It ends with the thread that made it, and shares that thread's core."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        """Start the process, without waiting for it; it gets its end of ``socket``.

        Raises:
            OSError: no process could be started.
        """
        self._log = folder.with_suffix(".log")
        self.socket, theirs = socket.socketpair()
        setup = dataclasses.replace(setup, connection=theirs.fileno())
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
                    pass_fds=[setup.connection, *setup.results, *itertools.chain(*setup.inputs)],
                    # Its children stay in its group; Ctrl-C at the terminal is for us alone.
                    start_new_session=True,
                )
        except OSError:
            self.socket.close()
            raise

    def wait_ready(self) -> Mapping[str, str]:
        """Wait until the zygote is warm; return the walls that it lacks, each with the reason.

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
        """Kill the zygote and its child; may be called from any thread, and again."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def _environment(folder: Path) -> dict[str, str]:
    """Return a zygote's whole environment: one thread, equal hashes, and none of our secrets."""
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
