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

_log = logging.getLogger(__name__)


class Lane(abc.ABC):
    """Keeps one process alive. All methods but `stop` and `wait_walls` belong to one thread."""

    def __init__(self, deliver: Callable[[int, Evaluation], None]) -> None:
        """Make a lane without a process; ``deliver`` takes a task's ticket and the verdict."""
        self._deliver = deliver
        self._lock = threading.Lock()
        self._stopped = False
        self._server: Server | None = None
        self._first: Future[Mapping[str, str]] = Future()  # the walls that the first one lacks
        self.record: Callable[[float], None] = lambda seconds: None
        """Called before each verdict with the wall seconds for which the lane had the program."""
        self.strict = False
        """Whether a process that lacks a wall is as good as none."""

    def connect(self) -> int:
        """Return the descriptor of a socket to a warm process, starting one if there is none.

        Raises:
            NotStarted: there is none to be had; the text says why.
        """
        if self._server is not None:
            return self._server.socket.fileno()
        try:
            with self._lock:
                if self._stopped:
                    raise NotStarted("it was closed")
                server = self._server = self._start()
            missing = server.wait_ready()
            self._begin(server)
            if not self._first.done():
                self._first.set_result(missing)
            if self.strict and missing:
                raise NotStarted(f"its sandbox lacks a wall, {', '.join(missing)}")
        except Exception as error:  # whoever waits for the first one must get an answer
            self.drop()
            why = "it was closed" if self._stopped else f"a sandbox did not start: {error}"
            refusal = NotStarted(f"evaluator: {why}")
            if not self._stopped:
                _log.warning("%s", refusal)
            if not self._first.done():
                self._first.set_exception(refusal)
            raise refusal from error
        return server.socket.fileno()

    def drop(self) -> None:
        """Give the process up, if there is one."""
        with self._lock:
            if self._server is not None:
                self._server.kill()
                self._server.socket.close()
            self._server = None

    def judge(self, ticket: int, stage: int, observation: Observation) -> None:
        """Deliver the verdict on one program; always delivers one."""
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
            self._stopped = True
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
        if self._stopped:
            reason = "evaluator: it was closed"
        return crashed(reason or "its sandbox was lost twice")
