"""Who used a run's wall-clock time: the shares of a timeline.

Covers: how long the model and the evaluators were busy, together and alone, and what they waited
for.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.timeline import EVALUATORS, MODEL, OPENED, Activity, read_events


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelUse:
    """What the model did, in shares of the time that sum to 1.

    Attributes:
        busy: in the engine's step.
        awaiting_evaluations: had nothing to decode until verdicts were in.
        awaiting_parent: had nothing to decode until a parent was chosen, its prompt composed.
        other: nothing was recorded: what the process does between two steps, starts and ends.
    """

    busy: float
    awaiting_evaluations: float
    awaiting_parent: float
    other: float


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluatorUse:
    """What evaluator ``number`` did, in shares of the time that sum to 1."""

    number: int
    busy: float
    awaiting_candidates: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ClockUse:
    """Who used a run's wall-clock time.

    Attributes:
        seconds: of all sessions, as far as they were recorded; what the shares are shares of.
        sessions: how many there were.
        model: the model's share.
        evaluators: those of each evaluator, by number.
        both: share of the time in which the model and at least one evaluator were busy.
        model_only: in which the model was, and no evaluator.
        evaluators_only: in which an evaluator was, and the model was not.
        neither: in which nobody was.
    """

    seconds: float
    sessions: int
    model: ModelUse
    evaluators: tuple[EvaluatorUse, ...]
    both: float
    model_only: float
    evaluators_only: float
    neither: float


def clock_use(timeline: Path) -> ClockUse | None:
    """Return the shares of the time in a timeline's file; None if it spans none or is missing.

    Raises:
        UserError: the file can't be read.
    """
    if not timeline.exists():
        return None
    done: Counter[tuple[int, str]] = Counter()  # us, by thread and activity
    work: list[tuple[int, int, bool]] = []  # start, end, whether it is the model's
    evaluators: set[int] = set()
    total = sessions = 0
    for event in read_events(timeline):
        end = event.ts + event.dur
        total = max(total, end)
        sessions += event.name == OPENED
        if event.tid != MODEL:
            evaluators.add(event.tid)
        if event.ph == "X":
            done[event.tid, event.name] += event.dur
            if event.name in (Activity.STEP, Activity.EVALUATE):
                work.append((event.ts, end, event.tid == MODEL))
    if not total:
        return None

    both, model_only, evaluators_only = _overlap(work)
    steps, evaluations, parent = (
        done[MODEL, activity]
        for activity in (Activity.STEP, Activity.AWAIT_EVALUATIONS, Activity.AWAIT_PARENT)
    )
    busy = {tid: done[tid, Activity.EVALUATE] for tid in sorted(evaluators)}
    return ClockUse(
        seconds=total / 1e6,
        sessions=sessions,
        model=ModelUse(
            busy=steps / total,
            awaiting_evaluations=evaluations / total,
            awaiting_parent=parent / total,
            other=(total - steps - evaluations - parent) / total,
        ),
        evaluators=tuple(
            EvaluatorUse(
                number=tid - EVALUATORS, busy=us / total, awaiting_candidates=(total - us) / total
            )
            for tid, us in busy.items()
        ),
        both=both / total,
        model_only=model_only / total,
        evaluators_only=evaluators_only / total,
        neither=(total - both - model_only - evaluators_only) / total,
    )


def _overlap(work: Sequence[tuple[int, int, bool]]) -> tuple[int, int, int]:
    """Return the us in which both were busy, the model alone, and evaluators alone."""
    start, end, is_model = np.array(work, np.int64).reshape(-1, 3).T
    times = np.concatenate([start, end])
    order = np.argsort(times)
    change = np.concatenate([np.ones_like(start), -np.ones_like(end)])[order]
    model = np.tile(is_model, 2)[order]
    model_busy = np.cumsum(change * model)[:-1] > 0
    evaluators_busy = np.cumsum(change * (1 - model))[:-1] > 0
    lasting = np.diff(times[order])
    return (
        int(lasting[model_busy & evaluators_busy].sum()),
        int(lasting[model_busy & ~evaluators_busy].sum()),
        int(lasting[~model_busy & evaluators_busy].sum()),
    )
