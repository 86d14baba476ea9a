"""One lane of evaluation: a pinned thread's own zygote and memory, and what it makes of a run.

The native thread (``native/workers.cpp``) calls `connect`, `drop` and `judge`; nobody else does.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from engine.core import Evaluation, Problem
from engine.evaluation._native import Observation, Outcome
from engine.evaluation.contract import packed_size
from engine.evaluation.memory import ResultMemory
from engine.evaluation.process import NotStarted, ZygoteProcess
from engine.evaluation.verdict import crashed, groups, judge
from engine.evaluation.warmth import Warmth
from engine.evaluation.wire import RAISED_BYTES

Deliver = Callable[[int, Evaluation], None]

_log = logging.getLogger(__name__)


class Lane:
    """Keeps one zygote alive. All methods but `stop` and `wait_walls` belong to one thread."""

    def __init__(
        self,
        *,
        problem: Problem,
        inputs: Sequence[Sequence[int]],
        folder: Path,
        warmth: Warmth,
        deliver: Deliver,
    ) -> None:
        """Make a lane without a zygote.

        Args:
            problem: what its programs are for.
            inputs: for each stage, a descriptor for each process with the cases that it runs.
            folder: where its zygotes run.
            warmth: what they make ready.
            deliver: takes a task's ticket and the verdict.
        """
        self._problem = problem
        self._inputs = inputs
        self._folder = folder
        self._warmth = warmth
        self._deliver = deliver
        processes = max(len(stage) for stage in inputs)
        self._results = [ResultMemory(_most_bytes(problem)) for _ in range(processes)]
        self._lock = threading.Lock()
        self._stopped = False
        self._zygote: ZygoteProcess | None = None
        self._started = threading.Event()
        self._missing_walls: Mapping[str, str] | None = None
        self._refusal = ""
        self.record: Callable[[float], None] = lambda seconds: None
        """Called after each verdict with the wall seconds of the program's run."""
        self.strict = False
        """Whether a zygote that lacks a wall is as good as none."""

    def connect(self) -> int:
        """Return the descriptor of a socket to a warm zygote, starting one if there is none.

        Raises:
            NotStarted: there is none to be had; the text says why.
        """
        if self._zygote is not None:
            return self._zygote.connection
        try:
            zygote = self._start()
            self._missing_walls = zygote.wait_ready()
            if self.strict and self._missing_walls:
                raise NotStarted(f"its sandbox lacks a wall, {', '.join(self._missing_walls)}")
        except (NotStarted, OSError) as error:
            self.drop()
            if self._stopped:
                raise NotStarted("evaluator: it was closed") from error
            self._refusal = f"evaluator: a zygote did not start: {error}"
            _log.warning("%s", self._refusal)
            raise NotStarted(self._refusal) from error
        finally:
            self._started.set()
        return zygote.connection

    def drop(self) -> None:
        """Give the zygote up, if there is one."""
        with self._lock:
            if self._zygote is not None:
                self._zygote.close()
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
        self._started.wait()
        if self._missing_walls is None:
            raise NotStarted(self._refusal)
        return self._missing_walls

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

    def _start(self) -> ZygoteProcess:
        with self._lock:
            if self._stopped:
                raise NotStarted("it was closed")
            self._zygote = ZygoteProcess(
                problem=self._problem,
                inputs=self._inputs,
                results=[each.fd for each in self._results],
                folder=self._folder,
                warmth=self._warmth,
            )
            return self._zygote

    def _evaluation(self, stage: int, observation: Observation) -> Evaluation:
        if observation.outcome is Outcome.LOST:
            reason = observation.output.decode(errors="replace")
            if self._stopped:
                reason = "evaluator: it was closed"
            return crashed(reason or "its zygote was lost twice")
        results = [each.read() for each in self._results[: len(observation.seconds)]]
        return judge(self._problem, self._problem.stages[stage], observation, results)


def _most_bytes(problem: Problem) -> int:
    """Return the most bytes that the result of one process can have, its tag included."""
    sizes = [
        sum(map(packed_size, group)) for stage in problem.stages for group in groups(problem, stage)
    ]
    return 1 + max(*sizes, RAISED_BYTES)
