"""Runs in memory: the real loop, model, search and evaluators, with nothing written to disk.

What ``engine.run`` wires up from files, for benchmarks that make many runs with one loaded model.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.core import INITIAL, Problem
from engine.evaluation import EvaluatorPool
from engine.inference import LanguageModel
from engine.loop import Loop
from engine.prompts import make_operators
from engine.restore import told_cascade, told_search
from engine.settings import RunSettings
from engine.store import Event, Recorded, RunHistory, Verdict
from engine.timeline import Timeline
from engine.timeline_file import TIMELINE

Stopped = Callable[[RunHistory], bool]


def run_in_memory(
    *,
    settings: RunSettings,
    problem: Problem,
    model: LanguageModel,
    pool: EvaluatorPool,
    stopped: Stopped,
    known: Sequence[Event] = (),
) -> tuple[RunHistory, list[Event]]:
    """Run the loop until ``stopped`` says so; return the history and all events.

    Args:
        settings: the run's.
        problem: that ``pool`` evaluates.
        model: whose prefix cache the run starts with as it is.
        pool: the evaluators.
        stopped: asked with the history so far; children still in the works then are dropped.
        known: the events of an earlier run that this one goes on from; its settings may differ.
    """
    history = RunHistory(direction=problem.direction)
    events: list[Event] = []
    began = time.monotonic()

    def record(event: Event) -> None:
        events.append(event)
        history.fold(Recorded(session=0, elapsed=time.monotonic() - began, event=event))

    for event in known:
        record(event)
    if INITIAL not in history.verdicts:
        first = pool.evaluate(problem.initial_program)
        record(Verdict.of(INITIAL, first, program=problem.initial_program))
    operators = make_operators(
        problem=problem,
        tokenizer=model,
        max_tokens=settings.model.max_tokens,
        prompts=settings.prompts,
    )
    with tempfile.TemporaryDirectory() as folder, Timeline(Path(folder) / TIMELINE) as timeline:
        Loop(
            settings=settings,
            history=history,
            record=record,
            search=told_search(settings, problem, history, model),
            operators={name: operators[name] for name, w in settings.search.operators.items() if w},
            model=model,
            evaluator=told_cascade(settings, problem, history, pool),
            stopped=lambda: stopped(history),
            timeline=timeline,
        ).run()
    return history, events
