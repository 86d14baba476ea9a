"""A pool of evaluators: programs in, the most urgent first, and verdicts out as they are reached.

Native threads, each bound to a core, hand programs to zygotes on the same core and score what
comes back in this process; the programs themselves run in confined processes below the zygotes.
"""

import atexit
import functools
import itertools
import logging
import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar, Self

from engine.core import Evaluation, Problem, UserError
from engine.evaluation._native import Workers
from engine.evaluation.contract import check_contract
from engine.evaluation.cores import evaluator_cores
from engine.evaluation.descriptors import allow_descriptors
from engine.evaluation.evaluators import EvaluatorsLost
from engine.evaluation.lane import Lane
from engine.evaluation.server import NotStarted
from engine.evaluation.verdict import groups
from engine.evaluation.warmth import warmth_for_all, warmth_for_one
from engine.evaluation.wire import encode_cases, sealed_input
from engine.evaluation.zygote_lane import ZygoteLane
from engine.problem.places import place_of_function
from engine.scratch import make_scratch, remove_stale
from engine.timeline import Activity, Timeline

GRACE_SECONDS = 5.0
"""How much longer than the program's limit a zygote may take to answer before it is replaced."""

IDLE_PATIENCE = 20
"""How many times a problem's seconds a program may take that runs only where a core is idle."""

_SCRATCH = "brood-workers-"  # begins the name of a pool's own folder for temporary files
_log = logging.getLogger(__name__)


def lane_folders(workers: int, resources: ExitStack) -> list[Path]:
    """Return an empty folder for each lane; ``resources`` removes them.

    Raises:
        UserError: the folder for temporary files can't be written.
    """
    try:
        parent = Path(tempfile.gettempdir())
        remove_stale(parent, _SCRATCH)  # of processes that were killed
        scratch, lock = make_scratch(parent, f"{_SCRATCH}{secrets.token_hex(8)}")
    except OSError as error:
        raise UserError(f"no temporary folder: {error}; make room, or set TMPDIR") from error
    resources.callback(os.close, lock)
    resources.callback(shutil.rmtree, scratch, ignore_errors=True)
    folders = [scratch / f"worker-{index}" for index in range(workers)]
    for folder in folders:
        folder.mkdir()
    return folders


class EvaluatorPool:
    """Evaluates programs for one problem with ``workers`` workers; a context manager.

    The constructor returns at once; the zygotes warm up meanwhile. Every method may be called
    from any thread. With several workers, the problem's ``score`` runs in several threads at once.
    """

    WALLS: ClassVar[Sequence[str]] = ("files", "calls", "network", "mounts", "limits")
    """The walls round a candidate, by the names under which a missing one is told."""

    def __init__(
        self,
        *,
        problem: Problem,
        workers: int,
        cores: Sequence[int] | None = None,
        only: str | None = None,
        idle: bool = False,
    ) -> None:
        """Start the workers.

        Args:
            problem: what the programs are for.
            workers: their number.
            cores: one for each worker; None for those of `evaluator_cores`.
            only: the one program that is to be evaluated, whose zygote is warm sooner; None for
                any number.
            idle: whether programs run only when nothing else wants the workers' cores.

        Raises:
            UserError: ``workers`` is below 1 or more than this machine can start, or a case
                can't be checked.
        """
        if workers < 1:
            raise UserError(f"the number of evaluation workers is {workers}; it must be 1 or more")
        try:
            check_contract([case for stage in problem.stages for case in stage.cases])
        except (TypeError, ValueError) as error:
            where = place_of_function(problem.folder / "evaluator.py", "cases")
            raise UserError(f"{where}: {error}; mend its contract") from error
        allow_descriptors()
        self._idle = idle
        self._seconds = problem.limits.seconds * (IDLE_PATIENCE if idle else 1)
        self._change = threading.Condition()
        self._tickets = itertools.count()
        self._awaited: dict[int, str] = {}  # candidates by their tickets
        self._finished: list[tuple[str, Evaluation]] = []
        self._failure = ""  # why an evaluator can't go on
        self._announce: Callable[[], object] = lambda: None
        self._stages = len(problem.stages)
        with ExitStack() as resources:
            try:
                self._lanes = self._make_lanes(problem, workers, only, resources)
                self._workers: Workers | None = Workers(
                    lanes=self._lanes,
                    cores=list(cores or evaluator_cores(workers)),
                    seconds=self._seconds + GRACE_SECONDS,
                )
            except (OSError, RuntimeError) as error:  # out of descriptors, memory or threads
                raise UserError(f"{workers} evaluation workers are too many: {error}") from error
            self._resources = resources.pop_all()
        atexit.register(self.close)

    def _make_lanes(
        self, problem: Problem, workers: int, only: str | None, resources: ExitStack
    ) -> list[Lane]:
        """Return the lanes; what is to be freed after them goes to ``resources``."""
        inputs: list[list[int]] = []
        for stage in problem.stages:
            inputs.append([])
            for group in groups(problem, stage):
                inputs[-1].append(sealed_input(encode_cases(group)))
                resources.callback(os.close, inputs[-1][-1])
        warmth = warmth_for_all(problem) if only is None else warmth_for_one(problem, only)
        lanes: list[Lane] = []
        for folder in lane_folders(workers, resources):
            lanes.append(
                ZygoteLane(
                    *(problem, inputs, folder, warmth, self._deliver, self._fail),
                    seconds=self._seconds,
                    idle=self._idle,
                )
            )
            resources.callback(lanes[-1].close)
        return lanes

    def announce_to(self, notify: Callable[[], object]) -> None:
        """Have ``notify`` called, in a worker's thread, whenever `completed` has a new verdict."""
        self._announce = notify

    def watch(self, timeline: Timeline) -> None:
        """Record from now on when each worker is busy."""
        track, activity = timeline.evaluator, Activity.EVALUATE
        if self._idle:
            track, activity = timeline.filler, Activity.FILL
        for number, lane in enumerate(self._lanes):
            lane.record = functools.partial(track(number).add, activity)

    @property
    def in_flight(self) -> int:
        """Programs submitted whose verdict `completed` has not returned yet."""
        with self._change:
            return len(self._awaited) + len(self._finished)

    def check_walls(self, *, strict: bool) -> None:
        """Wait until the workers are warm, and say which walls round a candidate are missing.

        Raises:
            UserError: one is missing and ``strict`` is set, or a worker could not be started.
        """
        missing: dict[str, str] = {}
        for lane in self._lanes:
            lane.strict = strict
            try:
                missing |= lane.wait_walls()
            except NotStarted as error:
                raise UserError(str(error)) from error
        for wall, reason in missing.items():
            if strict:
                raise UserError(
                    f"the sandbox lacks a wall, {wall}: {reason}; mend that, or give "
                    "evaluation.strict=false"
                )
            _log.warning("the sandbox lacks a wall, %s: %s", wall, reason)
        standing = [wall for wall in self.WALLS if wall not in missing]
        _log.info("walls of the sandbox: %s", ", ".join(standing))

    def submit(
        self, *, candidate_id: str, program: str, stage: int | None = None, order: int = 0
    ) -> None:
        """Queue ``program``; its verdict comes from `completed` under ``candidate_id``.

        Args:
            candidate_id: names the verdict.
            program: its text.
            stage: index of one of the problem's stages; None for the full evaluation.
            order: a program runs before all of higher orders, and after those of its own that
                were queued before it.

        Raises:
            RuntimeError: the pool is closed.
            ValueError: there is no such stage.
        """
        which = self._stages - 1 if stage is None else stage
        if not 0 <= which < self._stages:
            raise ValueError(f"Expected a stage from 0 to {self._stages - 1} but it is {which}")
        data = program.encode(errors="surrogatepass")
        with self._change:
            if self._workers is None:
                raise RuntimeError("the evaluator pool is closed")
            ticket = next(self._tickets)
            self._awaited[ticket] = candidate_id
            self._workers.submit(ticket=ticket, stage=which, order=order, program=data)

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        """Return all verdicts since the last call, in the order in which they were reached.

        Waits up to ``timeout`` seconds (None: for ever) for the first one; returns an empty list
        at once when nothing is in flight, or when the pool is closed.

        Raises:
            EvaluatorsLost: one was lost and none can be started in its place, so that a program
                gets no verdict. The verdicts that are in come first.
        """
        with self._change:
            self._change.wait_for(self._has_news, timeout)
            finished, self._finished = self._finished, []
            if self._failure and not finished:
                raise EvaluatorsLost(
                    f"{self._failure}; mend that, and start again or resume the run"
                )
            return finished

    def _has_news(self) -> bool:
        is_over = not self._awaited or self._workers is None
        return bool(self._finished or self._failure) or is_over

    def close(self) -> None:
        """Kill every process, join every thread, drop what was not finished; idempotent."""
        with self._change:
            workers, self._workers = self._workers, None
            self._change.notify_all()
        if workers is None:
            return
        atexit.unregister(self.close)
        for lane in self._lanes:
            lane.stop()
        workers.close()
        self._awaited.clear()
        self._finished.clear()
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _fail(self, reason: str) -> None:
        with self._change:
            self._failure = reason
            self._change.notify_all()
        self._announce()

    def _deliver(self, ticket: int, evaluation: Evaluation) -> None:
        with self._change:
            if self._workers is None:
                return
            self._finished.append((self._awaited.pop(ticket), evaluation))
            self._change.notify_all()
        self._announce()
