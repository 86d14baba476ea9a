"""A pool of evaluators: programs in, verdicts out, in the order in which they finish.

One thread for each worker waits on that worker's socket and scores in this process; the
programs themselves run in processes below the workers.
"""

from __future__ import annotations

import importlib.util
import logging
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from engine.core import Evaluation, Failure, Problem, UserError
from engine.evaluation.contract import check_contract
from engine.evaluation.lane import Lane
from engine.evaluation.verdict import failed_evaluation

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Task:
    program: str
    deliver: Callable[[Evaluation], None]


class EvaluatorPool:
    """Evaluates programs for one problem in ``workers`` processes; a context manager.

    The constructor returns at once; the workers warm up meanwhile. Every method may be called
    from any thread. With several workers, the problem's ``score`` runs in several threads at once.
    """

    def __init__(self, *, problem: Problem, workers: int) -> None:
        """Start the workers.

        Raises:
            UserError: ``workers`` is below 1, a case can't be checked, or the extension
                ``engine.evaluation._native`` was not built.
        """
        if workers < 1:
            raise UserError(f"the number of evaluation workers is {workers}; it must be 1 or more")
        if importlib.util.find_spec("engine.evaluation._native") is None:
            raise UserError("engine.evaluation._native is not built; install the project first")
        try:
            check_contract(problem.cases)
        except (TypeError, ValueError) as error:
            raise UserError(f"{problem.folder / 'evaluator.py'}: {error}") from error
        self._change = threading.Condition()
        self._waiting: deque[_Task] = deque()
        self._finished: list[tuple[str, Evaluation]] = []
        self._in_flight = 0
        self._closed = False
        self._scratch = tempfile.TemporaryDirectory(
            prefix="brood-evaluation-", ignore_cleanup_errors=True
        )
        self._lanes = [self._make_lane(problem, index) for index in range(workers)]
        self._threads = [
            threading.Thread(target=self._attend, args=(lane,), name=f"evaluator-{i}", daemon=True)
            for i, lane in enumerate(self._lanes)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def in_flight(self) -> int:
        """Programs submitted whose verdict `completed` has not returned yet."""
        with self._change:
            return self._in_flight

    def evaluate(self, program: str) -> Evaluation:
        """Return the verdict on ``program``, waiting for it; always returns one."""
        future: Future[Evaluation] = Future()
        self._put(_Task(program=program, deliver=future.set_result), counted=False)
        return future.result()

    def submit(self, *, candidate_id: str, program: str) -> None:
        """Queue ``program``; its verdict comes from `completed` under ``candidate_id``.

        Raises:
            RuntimeError: the pool is closed.
        """

        def deliver(evaluation: Evaluation) -> None:
            with self._change:
                self._finished.append((candidate_id, evaluation))
                self._change.notify_all()

        if not self._put(_Task(program=program, deliver=deliver), counted=True):
            raise RuntimeError("the evaluator pool is closed")

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        """Return all verdicts since the last call, in the order in which they were reached.

        Waits up to ``timeout`` seconds (None: for ever) for the first one; returns an empty list
        at once when nothing is in flight, or when the pool is closed.
        """
        with self._change:
            self._change.wait_for(
                lambda: self._finished or not self._in_flight or self._closed, timeout
            )
            finished, self._finished = self._finished, []
            self._in_flight -= len(finished)
            return finished

    def close(self) -> None:
        """Kill every process, join every thread, drop what was not finished; idempotent."""
        with self._change:
            self._closed = True
            dropped = list(self._waiting)
            self._waiting.clear()
            self._change.notify_all()
        for lane in self._lanes:
            lane.stop()
        for task in dropped:
            task.deliver(failed_evaluation(Failure.CRASH, "evaluator: it was closed"))
        for thread in self._threads:
            thread.join()
        with self._change:
            self._finished.clear()
            self._in_flight = 0
        self._scratch.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _make_lane(self, problem: Problem, index: int) -> Lane:
        folder = Path(self._scratch.name) / f"worker-{index}"
        folder.mkdir()
        return Lane(problem=problem, folder=folder)

    def _put(self, task: _Task, *, counted: bool) -> bool:
        """Queue ``task`` and return True; on a closed pool, deliver a failure if not counted."""
        with self._change:
            if not self._closed:
                self._waiting.append(task)
                self._in_flight += counted
                self._change.notify_all()
                return True
        if not counted:
            task.deliver(failed_evaluation(Failure.CRASH, "evaluator: it was closed"))
        return False

    def _take(self) -> _Task | None:
        """Wait for the next task; None when the pool is closed."""
        with self._change:
            self._change.wait_for(lambda: self._waiting or self._closed)
            return None if self._closed else self._waiting.popleft()

    def _attend(self, lane: Lane) -> None:
        try:
            lane.warm()
            while (task := self._take()) is not None:
                task.deliver(_evaluate(lane, task.program))
        finally:
            lane.close()


def _evaluate(lane: Lane, program: str) -> Evaluation:
    try:
        return lane.evaluate(program)
    except Exception as error:  # whatever broke, whoever waits for this verdict must get one
        _log.exception("the evaluator failed")
        return failed_evaluation(Failure.CRASH, f"evaluator: {type(error).__name__}: {error}")
