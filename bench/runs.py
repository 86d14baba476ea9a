"""Runs that leave no folder: the real loop, model, search, evaluators and log.

What `engine.Run` joins, for benchmarks that make many runs with one loaded model.
"""

import functools
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine import Run
from engine.beginning import begun_session, first_events
from engine.core import Problem
from engine.evaluation import EvaluatorPool
from engine.inference import Model
from engine.parts import Parts
from engine.pool import read_pool
from engine.report.clock import clock_use
from engine.settings import RunSettings
from engine.store import Event, EventLog, RunHistory, create_run
from engine.syntax.workers import SyntaxWorkers
from engine.timeline import TIMELINE

Stopped = Callable[[RunHistory], bool]


@dataclass(frozen=True, kw_only=True, slots=True)
class TemporaryRun:
    """What a run leaves behind.

    Attributes:
        history: of it.
        events: all of them.
        clock: who used its time; see `clock_use`.
    """

    history: RunHistory
    events: Sequence[Event]
    clock: Mapping[str, Any]


def temporary_run(
    *,
    settings: RunSettings,
    problem: Problem,
    model: Model,
    pool: EvaluatorPool,
    stopped: Stopped,
    known: Sequence[Event] = (),
) -> TemporaryRun:
    """Run the loop until ``stopped`` says so, or the budget is spent.

    Args:
        settings: the run's, with the pool that it begins with.
        problem: that ``pool`` evaluates.
        model: whose prefix cache the run starts with as it is.
        pool: the evaluators.
        stopped: asked with the history so far; children still in the works then are dropped, and
            candidates are still evaluated, as the pool is the next run's too.
        known: the events of an earlier run that this one goes on from; its settings may differ.
    """
    parts = Parts(
        problem=problem,
        evaluators=pool,
        syntax=syntax_workers(),
        load=lambda: model,
        cores=tuple(os.sched_getaffinity(0)),
    )
    sources, most = settings.pool.sources, settings.pool.most_of_run
    reading = read_pool(sources, problem=problem, most_of_run=most)
    events = known or [begun_session(0, problem), *first_events(settings, parts, reading)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        create_run(folder, write_config=lambda path: None, events=events)
        with EventLog(folder, session=0) as log:
            run = Run(settings=settings, problem=problem, log=log, folder=folder, parts=parts)
            # Drained, because the pool is the next run's too.
            run.evolve(stopped=lambda: stopped(run.history), drains=True)
            made = [recorded.event for recorded in log.events()]
        clock = clock_use(folder / TIMELINE)
    assert clock is not None  # it lasted for some time
    return TemporaryRun(history=run.history, events=made, clock=clock)


@functools.cache
def syntax_workers() -> SyntaxWorkers:
    """Return the worker processes of all runs of this process; they end with it."""
    return SyntaxWorkers(count=1, cores=os.sched_getaffinity(0))
