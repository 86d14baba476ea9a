"""One lane of evaluation: a pinned thread's own process and memory, and what it makes of a run.

The native thread (``native/workers.cpp``) calls `connect`, `drop` and `judge`; nobody else does.
It is also the one that talks to a process once that is warm.

Does not cover what the process is, and what its answers mean: ``zygote_lane``, ``judge_lane``.
"""

import abc
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from engine.core import Evaluation
from engine.evaluation._native import Observation, Outcome
from engine.evaluation.server import NotStarted, Server
from engine.evaluation.verdict import crashed

_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before each new attempt to start a process in place of one that was lost.

What it lacks may be there again by then: memory, descriptors, processes, room on the disk."""
_log = logging.getLogger(__name__)


class Lane(abc.ABC):
    """Keeps one process alive. All methods but `stop` and `wait_walls` belong to one thread."""

    def __init__(
        self, deliver: Callable[[int, Evaluation], None], fail: Callable[[str], None]
    ) -> None:
        """Make a lane without a process.

        Args:
            deliver: takes a task's ticket and the verdict.
            fail: told why there is no process to be had, and so no verdict on a task.
        """
        self._deliver = deliver
        self._fail = fail
        self._refusal = ""  # why there is no process to be had
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._server: Server | None = None
        self._first: Future[Mapping[str, str]] = Future()  # the walls that the first one lacks
        self.record: Callable[[float], None] = lambda seconds: None
        """Called before each verdict with the wall seconds for which the lane had the program."""
        self.strict = False
        """Whether a process that lacks a wall is as good as none."""

    def connect(self) -> int:
        """Return the descriptor of a socket to a warm process, starting one if there is none.

        Where there was one before, a failure is tried again after a while.

        Raises:
            NotStarted: there is none to be had; the text says why.
        """
        pauses = iter(_PAUSES if self._first.done() and not self._first.exception() else ())
        while self._server is None:
            try:
                self._start_one()
            except Exception as error:  # whoever waits for the first one must get an answer
                self.drop()
                closed = self._stopping.is_set()
                why = "it was closed" if closed else f"a sandbox did not start: {error}"
                refusal = NotStarted(f"evaluator: {why}")
                if not closed:
                    _log.warning("%s", refusal)
                if not self._first.done():
                    self._first.set_exception(refusal)
                if (pause := next(pauses, None)) is None or self._stopping.wait(pause):
                    self._refusal = str(refusal)
                    raise refusal from error
        return self._server.socket.fileno()

    def _start_one(self) -> None:
        """Start a process and wait until it is warm."""
        with self._lock:
            if self._stopping.is_set():
                raise NotStarted("it was closed")
            server = self._server = self._start()
        missing = server.wait_ready()
        self._begin(server)
        if not self._first.done():
            self._first.set_result(missing)
        if self.strict and missing:
            raise NotStarted(f"its sandbox lacks a wall, {', '.join(missing)}")
        self._refusal = ""

    def drop(self) -> None:
        """Give the process up, if there is one."""
        with self._lock:
            if self._server is not None:
                self._server.kill()
                self._server.socket.close()
            self._server = None

    def judge(self, ticket: int, stage: int, observation: Observation) -> None:
        """Deliver the verdict on one program; where there was no process for it, say that."""
        if observation.outcome is Outcome.LOST and self._refusal and not self._stopping.is_set():
            self._fail(self._refusal)
            return
        began = time.perf_counter()
        try:
            evaluation = self._evaluation(stage, observation)
        except BaseException as error:  # whoever waits for this verdict must get one
            _log.exception("the evaluator failed")
            evaluation = crashed(f"evaluator: {type(error).__name__}: {error}")
        self.record(observation.elapsed + time.perf_counter() - began)
        self._deliver(ticket, evaluation)

    def wait_walls(self) -> Mapping[str, str]:
        """Wait for the first process; return the walls that it lacks, each with the reason.

        Raises:
            NotStarted: there was none to be had; the text says why.
        """
        return self._first.result()

    def stop(self) -> None:
        """Kill the process for good, from any thread."""
        with self._lock:
            self._stopping.set()
            if self._server is not None:
                self._server.kill()

    @abc.abstractmethod
    def close(self) -> None:
        """Free the memory for results; the thread has ended."""

    @abc.abstractmethod
    def _start(self) -> Server:
        """Start a process, without waiting for it.

        Raises:
            OSError: none could be started.
        """

    @abc.abstractmethod
    def _begin(self, server: Server) -> None:
        """Say to a warm process what it is to do before its first program."""

    @abc.abstractmethod
    def _verdict(self, stage: int, observation: Observation) -> Evaluation:
        """Return the verdict on a program that was run."""

    def _evaluation(self, stage: int, observation: Observation) -> Evaluation:
        if observation.outcome is not Outcome.LOST:
            return self._verdict(stage, observation)
        reason = observation.output.decode(errors="replace")
        if self._stopping.is_set():
            reason = "evaluator: it was closed"
        return crashed(reason or "its sandbox was lost twice")
