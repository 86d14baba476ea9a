"""Runs in memory: the real loop, model, search and evaluators, with nothing written to disk.

What ``engine.run`` wires up from files, for benchmarks that make many runs with one loaded model.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.core import INITIAL, Problem
from engine.evaluation import EvaluatorPool
from engine.inference import LanguageModel
from engine.loop import Loop
from engine.model import make_embedder
from engine.pool import read_sources, seeds
from engine.prompts import Operator, make_operators
from engine.report.clock import ClockUse, clock_use
from engine.restore import archive_features, restore, told_cascade
from engine.search import Expert, Guesses
from engine.search.features import cell_of
from engine.settings import RunSettings
from engine.store import Event, Recorded, RunHistory, Verdict
from engine.timeline import Timeline
from engine.timeline_file import TIMELINE

Stopped = Callable[[RunHistory], bool]


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryRun:
    """What a run leaves behind.

    Attributes:
        history: of it.
        events: all of them.
        clock: who used its time.
        predictor: how often each way to guess a parent was right.
    """

    history: RunHistory
    events: Sequence[Event]
    clock: ClockUse
    predictor: Mapping[Expert, Guesses]


def run_in_memory(
    *,
    settings: RunSettings,
    problem: Problem,
    model: LanguageModel,
    pool: EvaluatorPool,
    stopped: Stopped,
    known: Sequence[Event] = (),
) -> MemoryRun:
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
    offered = make_operators(
        problem=problem,
        tokenizer=model,
        max_tokens=settings.model.max_tokens,
        prompts=settings.prompts,
    )
    operators = {name: offered[name] for name, w in settings.search.operators.items() if w}
    features = archive_features(settings, problem)
    events = list(known)
    if not events:
        first = pool.evaluate(problem.initial_program)
        program = problem.initial_program
        cell = cell_of(program, first, features=features)
        events.append(Verdict.of(INITIAL, first, program=program, cell=cell))
        events += _seeds(settings, problem, model, pool, operators)
    recorded = [Recorded(session=0, elapsed=0.0, event=event) for event in events]
    restored = restore(settings, problem, recorded, model)
    state = restored.state
    began = time.monotonic()
    bell = threading.Event()
    pool.announce_to(bell.set)

    def record(event: Event) -> None:
        events.append(event)
        state.fold(Recorded(session=0, elapsed=time.monotonic() - began, event=event))

    evaluator = told_cascade(settings, problem, state.history, pool)
    with tempfile.TemporaryDirectory() as folder:
        with Timeline(Path(folder) / TIMELINE) as timeline:
            pool.watch(timeline)
            Loop(
                settings=settings,
                restored=restored,
                record=record,
                operators=operators,
                model=model,
                evaluator=evaluator,
                stopped=lambda: stopped(state.history),
                timeline=timeline,
                bell=bell,
            ).run()
            while evaluator.in_flight:
                for candidate_id, evaluation in evaluator.completed(timeout=None):
                    program = state.history.program_of(candidate_id)
                    cell = cell_of(program, evaluation, features=features)
                    record(Verdict.of(candidate_id, evaluation, cell=cell))
        clock = clock_use(Path(folder) / TIMELINE)
    assert clock is not None  # it lasted for some time
    return MemoryRun(
        history=state.history,
        events=events,
        clock=clock,
        predictor=state.search.predictor_figures(),
    )


def _seeds(
    settings: RunSettings,
    problem: Problem,
    model: LanguageModel,
    pool: EvaluatorPool,
    operators: Mapping[str, Operator],
) -> list[Event]:
    """Evaluate the programs of the settings' pool; none if they name none."""
    longest = min(operator.longest_parent for operator in operators.values())
    return seeds(
        settings.pool,
        read_sources(settings.pool, problem=problem),
        problem=problem,
        evaluators=pool,
        embedder=make_embedder(settings.pool.embedding, model),
        fits=lambda program: len(model.encode(program)) <= longest,
        islands=settings.islands.count,
        seed=settings.seed,
        features=archive_features(settings, problem),
    )
