"""A run's parts in the state that its log says they are in.

Covers: replaying the log, and telling the search and the cascade what is recorded. Does not cover
how a run begins or goes on: ``engine.run``.
"""

from __future__ import annotations

import functools

from engine.core import INITIAL, Problem
from engine.evaluation import Cascade, StagePool
from engine.prompts import Tokenizer
from engine.search import Entry, Search
from engine.settings import RunSettings
from engine.store import Child, EventLog, RunHistory

_SIZES_KEPT = 4096  # of the programs asked about last; a history has tens


def replay(log: EventLog, problem: Problem) -> RunHistory:
    """Return what the events of a log add up to."""
    history = RunHistory(direction=problem.direction)
    for recorded in log.events():
        history.fold(recorded)
    return history


def new_search(settings: RunSettings, problem: Problem, tokenizer: Tokenizer) -> Search:
    """Return a search that knows nothing yet."""
    return Search(
        settings=settings.search,
        width=settings.width,
        prompts=settings.prompts,
        direction=problem.direction,
        seed=settings.seed,
        size=functools.lru_cache(maxsize=_SIZES_KEPT)(lambda text: len(tokenizer.encode(text))),
    )


def told_search(
    settings: RunSettings, problem: Problem, history: RunHistory, tokenizer: Tokenizer
) -> Search:
    """Return a search that knows everything that is recorded."""
    search = new_search(settings, problem, tokenizer)
    search.admit(Entry(id=INITIAL, program=history.program_of(INITIAL)))
    for child in history.children.values():
        if child.refusal is None and child.program is not None:
            search.admit(entry_of(child, child.program))
    for verdict in history.verdicts.values():
        search.tell(verdict.candidate, verdict.evaluation())
    return search


def entry_of(child: Child, program: str) -> Entry:
    """Return what the search is to know of a child that is evaluated."""
    return Entry(
        id=child.id,
        program=program,
        iteration=child.iteration,
        parent=child.parent,
        operator=child.operator,
        answer=child.completion,
        answer_ids=child.completion_ids,
    )


def new_cascade(settings: RunSettings, problem: Problem, pool: StagePool) -> Cascade:
    """Return a cascade over ``pool`` that knows nothing yet."""
    cascade = settings.evaluation.cascade
    return Cascade(pool=pool, problem=problem, settings=cascade, seed=settings.seed)


def told_cascade(
    settings: RunSettings, problem: Problem, history: RunHistory, pool: StagePool
) -> Cascade:
    """Return a cascade over ``pool`` that knows everything that is recorded."""
    cascade = new_cascade(settings, problem, pool)
    for verdict in history.verdicts.values():
        child = history.children.get(verdict.candidate)
        iteration = -1 if child is None else child.iteration
        cascade.tell(verdict.candidate, verdict.evaluation(), iteration=iteration)
    return cascade
