"""Who used a run's wall-clock time: the shares of a timeline.

Covers: how long the model and the evaluators were busy, together and alone, and what they waited
for. Reads the file once in order, in memory that does not grow with the run. Does not cover the
picture of it: ``engine.report.trace``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.timeline_file import MODEL, RECORD, Activity, Kind, Records, read_timeline


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
    """Return the shares of the time in a timeline's file; None if it spans no time.

    Raises:
        UserError: the file can't be read.
    """
    done: Counter[tuple[int, int]] = Counter()  # ns, by track and activity
    overlap = _Overlap()
    tracks: set[int] = set()
    total = sessions = 0
    for records in read_timeline(timeline):
        total = max(total, int(records["end"].max()))
        sessions += int((records["kind"] == Kind.OPENED).sum())
        tracks.update(records["track"][records["kind"] == Kind.TRACK].tolist())
        spans = records[records["kind"] == Kind.SPAN]
        _add_durations(done, spans)
        overlap.take(spans)
    if not total:
        return None
    both, model_only, evaluators_only = overlap.finish()
    return ClockUse(
        seconds=total / 1e9,
        sessions=sessions,
        model=_model_use(done, total),
        evaluators=tuple(
            _evaluator_use(track, done[track, Activity.EVALUATE], total)
            for track in sorted(tracks - {MODEL})
        ),
        both=both / total,
        model_only=model_only / total,
        evaluators_only=evaluators_only / total,
        neither=(total - both - model_only - evaluators_only) / total,
    )


class _Overlap:
    """Sweeps over spans that come in order of ``start``, and adds up who was busy at once."""

    def __init__(self) -> None:
        self._ns = np.zeros((2, 2), np.int64)  # by whether the model, and an evaluator, was busy
        self._open: Records = np.empty(0, RECORD)  # the rest of the spans, after the sweep so far

    def take(self, spans: Records) -> None:
        """Sweep up to the last start of ``spans``: later ones can change nothing before it."""
        work = np.where(spans["track"] == MODEL, Activity.STEP, Activity.EVALUATE)
        spans = np.concatenate([self._open, spans[spans["what"] == work]])
        if len(spans):
            self._sweep(spans, until=int(spans["start"].max()))

    def finish(self) -> tuple[int, int, int]:
        """Return the ns in which both were busy, the model alone, and evaluators alone."""
        if len(self._open):
            self._sweep(self._open, until=int(self._open["end"].max()))
        return int(self._ns[1, 1]), int(self._ns[1, 0]), int(self._ns[0, 1])

    def _sweep(self, spans: Records, *, until: int) -> None:
        times = np.concatenate([spans["start"], np.minimum(spans["end"], until)])
        order = np.argsort(times)
        change = np.repeat([1, -1], len(spans))[order]
        is_model = np.tile(spans["track"] == MODEL, 2)[order]
        lasting = np.diff(times[order])
        np.add.at(self._ns, (_any(change, is_model), _any(change, ~is_model)), lasting)
        self._open = spans[spans["end"] > until]
        self._open["start"] = until


def _any(change: NDArray[np.int64], mine: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return 1 where a span of mine is open after a change, else 0; not for the last change."""
    return (np.cumsum(np.where(mine, change, 0))[:-1] > 0).astype(np.int64)


def _add_durations(done: Counter[tuple[int, int]], spans: Records) -> None:
    """Add the spans' ns to those of their track and activity; a track's spans do not overlap."""
    keys, which = np.unique(spans["track"] * np.int64(256) + spans["what"], return_inverse=True)
    sums = np.zeros(len(keys), np.int64)
    np.add.at(sums, which, spans["end"] - spans["start"])
    for key, ns in zip(keys.tolist(), sums.tolist(), strict=True):
        done[divmod(key, 256)] += ns


def _model_use(done: Mapping[tuple[int, int], int], total: int) -> ModelUse:
    busy, evaluations, parent = (
        done[MODEL, activity]
        for activity in (Activity.STEP, Activity.AWAIT_EVALUATIONS, Activity.AWAIT_PARENT)
    )
    return ModelUse(
        busy=busy / total,
        awaiting_evaluations=evaluations / total,
        awaiting_parent=parent / total,
        other=(total - busy - evaluations - parent) / total,
    )


def _evaluator_use(track: int, busy: int, total: int) -> EvaluatorUse:
    return EvaluatorUse(
        number=track - 1, busy=busy / total, awaiting_candidates=(total - busy) / total
    )
