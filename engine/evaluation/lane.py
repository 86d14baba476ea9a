"""One lane of evaluation: keeps one live worker and turns programs into verdicts through it."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from engine.core import Evaluation, Failure, Problem
from engine.evaluation.process import WorkerProcess
from engine.evaluation.verdict import failed_evaluation, judge, timeout_message
from engine.evaluation.wire import Lost, Setup

ATTEMPTS = 2
"""How many workers a program may lose before the loss counts as the program's own crash."""

_log = logging.getLogger(__name__)


class Lane:
    """Evaluates one program at a time. All methods but `stop` belong to one thread."""

    def __init__(self, *, problem: Problem, folder: Path) -> None:
        self._problem = problem
        self._folder = folder
        self._lock = threading.Lock()
        self._stopped = False
        self._worker: WorkerProcess | None = None

    def warm(self) -> None:
        """Start the worker, if none is there, without waiting for it."""
        with self._lock:
            if self._worker is not None or self._stopped:
                return
            try:
                self._worker = WorkerProcess(setup=_setup(self._problem), folder=self._folder)
            except OSError as error:  # no process to be had; `evaluate` says so in its verdict
                _log.warning("a worker could not be started: %s", error)

    def evaluate(self, program: str) -> Evaluation:
        """Return the verdict on ``program``; a lost worker is replaced and tried once more."""
        reason = "evaluator: no worker process could be started"
        for _ in range(ATTEMPTS):
            self.warm()
            worker = self._worker
            if self._stopped:
                break
            if worker is None:
                continue
            try:
                worker.wait_ready()
            except (Lost, TimeoutError) as error:
                if self._stopped:
                    break  # it was killed while it started
                reason = f"evaluator: a worker did not start: {str(error) or 'it took too long'}"
                _log.warning("%s", reason)
                self._drop()
                continue
            try:
                return judge(self._problem, worker.run(program))
            except TimeoutError:
                self._drop()
                return failed_evaluation(
                    Failure.TIMEOUT,
                    timeout_message(self._problem),
                    seconds=self._problem.limits.seconds,
                )
            except Lost as error:
                if self._stopped:
                    break
                reason = f"its worker process was lost {ATTEMPTS} times"
                _log.warning("a worker was lost (%s)", error)
                self._drop()
        return failed_evaluation(
            Failure.CRASH, "evaluator: it was closed" if self._stopped else reason
        )

    def stop(self) -> None:
        """Kill the worker for good, from any thread; `evaluate` then returns at once."""
        with self._lock:
            self._stopped = True
            if self._worker is not None:
                self._worker.kill()

    def close(self) -> None:
        """Kill the worker for good and free what belongs to it."""
        self.stop()
        self._drop()

    def _drop(self) -> None:
        with self._lock:
            if self._worker is not None:
                self._worker.close()
            self._worker = None


def _setup(problem: Problem) -> Setup:
    return Setup(
        entry_point=problem.entry_point,
        cases=list(problem.cases),
        isolate_cases=problem.isolate_cases,
        seconds=problem.limits.seconds,
        memory_bytes=problem.limits.memory_bytes,
    )
