"""Bringing a run's search and cascade into the state that its log describes.

Covers: replaying the log into both, and finding the calls that a death cut short. Does not cover
how a run begins or goes on: ``engine.assembly``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.core import Feature, Pending, Problem, Proposal, UserError
from engine.evaluation import Cascade, StagePool
from engine.pipeline import RunState
from engine.prompts import Tokenizer
from engine.search.choice import Choice
from engine.search.features import dimensions
from engine.search.search import Search
from engine.settings import RunSettings
from engine.store import Call, Recorded, RunHistory, check_follows

_SIZES_KEPT = 4096  # of the programs asked about last; a history has tens


@dataclass(frozen=True, kw_only=True, slots=True)
class Restored:
    """A run as its log leaves it.

    Attributes:
        state: everything that is recorded.
        unfinished: the calls whose children are not all recorded, as they were proposed.
    """

    state: RunState
    unfinished: tuple[Proposal, ...]


def replay(events: Iterable[Recorded], problem: Problem) -> RunHistory:
    """Return what events add up to.

    Raises:
        UserError: one of them refers to something that the log does not hold.
    """
    history = RunHistory(direction=problem.direction)
    for recorded in events:
        try:
            check_follows(recorded.event, history)
        except ValueError as error:
            raise UserError(
                f"the run's log is damaged: {error}; restore it from a copy, or start a new run"
            ) from error
        history.fold(recorded)
    return history


def restore(
    settings: RunSettings, problem: Problem, events: Sequence[Recorded], tokenizer: Tokenizer
) -> Restored:
    """Return the run that ``events`` record, with a search that knows all of it."""
    whole = replay(events, problem)
    cut_short = [call for call in whole.calls.values() if whole.missing(call)]
    state = RunState(
        history=RunHistory(direction=problem.direction),
        search=_new_search(settings, problem, tokenizer),
        workers=settings.evaluation.workers,
    )
    proposals: dict[int, Proposal] = {}
    for recorded in events:
        proposals |= _asked_now(cut_short, state, whole)
        state.fold(recorded)
    proposals |= _asked_now(cut_short, state, whole)
    return Restored(state=state, unfinished=tuple(proposals[call.iteration] for call in cut_short))


def _asked_now(calls: Iterable[Call], state: RunState, whole: RunHistory) -> dict[int, Proposal]:
    """Return the proposals of the calls that were composed when the log was as long as now."""
    return {
        call.iteration: state.search.recall(
            call.iteration,
            island=call.island,
            choice=Choice(
                parent=call.parent,
                rule=call.rule,
                operator=call.operator,
                k=call.k,
                partner=call.partner,
                repairs=call.repairs,
            ),
            ahead=tuple(Pending(id=each, program=whole.program_of(each)) for each in call.ahead),
        )
        for call in calls
        if call.known == state.history.events
    }


def archive_features(settings: RunSettings, problem: Problem) -> tuple[Feature, ...] | None:
    """Return the features of a run's archives; None for a run without.

    Raises:
        UserError: the problem is to name them and names none.
    """
    return dimensions(
        settings.search.archive,
        initial_program=problem.initial_program,
        declared=problem.features,
    )


def _new_search(settings: RunSettings, problem: Problem, tokenizer: Tokenizer) -> Search:
    return Search(
        settings=settings.search,
        width=settings.width,
        islands=settings.islands,
        prompts=settings.prompts,
        direction=problem.direction,
        seed=settings.seed,
        size=functools.lru_cache(maxsize=_SIZES_KEPT)(lambda text: len(tokenizer.encode(text))),
        features=archive_features(settings, problem),
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
        cascade.tell(verdict.candidate, verdict.evaluation, iteration=iteration)
    cascade.resume(history.switched_off)
    return cascade
