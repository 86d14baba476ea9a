"""``analysis=progress``: the best score so far against what it took.

Covers: the best of each run against evaluated candidates, generated tokens, wall seconds and money,
and over several runs its median and extremes at equal budgets. A run that ended before a budget was
used up does not count at that budget, whatever it had reached.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from engine.report.analysis.runs import RunRecord, Totals
from engine.report.analysis.statistics import median
from engine.report.analysis.table import Findings, Table

_STEPS = 10  # into which an axis is divided
_WHOLE = ("candidates", "tokens")
_LABELS = {
    "candidates": "evaluated candidates",
    "tokens": "generated tokens",
    "seconds": "wall seconds",
    "money": "money",
}

Point = tuple[Totals, float]
"""A score that was the best from these totals on."""


def progress(runs: Sequence[RunRecord]) -> Findings:
    """Follow the best score of each run, and of all of them together."""
    curves = [_curve(run) for run in runs]
    axes = {axis: _axis(axis, runs, curves) for axis in _LABELS if _is_used(axis, runs)}
    figures: dict[str, Any] = {
        "runs": [
            {
                "run": run.name,
                "points": [{**dataclasses.asdict(totals), "best": best} for totals, best in curve],
                "end": {**dataclasses.asdict(run.end), "best": curve[-1][1] if curve else None},
            }
            for run, curve in zip(runs, curves, strict=True)
        ],
        "axes": axes,
    }
    return Findings(figures=figures, tables=[_table(*each) for each in axes.items()])


def _is_used(axis: str, runs: Sequence[RunRecord]) -> bool:
    """Whether anything was used on an axis: most runs' tokens have no prices."""
    return any(getattr(run.end, axis) > 0 for run in runs)


def _curve(run: RunRecord) -> list[Point]:
    """Return the points at which a run's best score changed, the initial one first."""
    points: list[Point] = []
    for candidate, totals in run.totals.items():
        score = run.history.verdicts[candidate].score
        if score is not None and (
            not points or run.history.direction.better(score, than=points[-1][1])
        ):
            points.append((totals, score))
    return points


def _axis(
    axis: str, runs: Sequence[RunRecord], curves: Sequence[Sequence[Point]]
) -> list[dict[str, Any]]:
    """Return what the runs had reached at each of some equally spaced budgets."""
    most = max(getattr(run.end, axis) for run in runs)
    rows = []
    for at in _steps(most, is_whole=axis in _WHOLE):
        bests = [
            best
            for run, curve in zip(runs, curves, strict=True)
            if at <= getattr(run.end, axis) and (best := _best(curve, axis, at)) is not None
        ]
        rows.append(
            {
                "at": at,
                "median": median(bests),
                "low": min(bests, default=None),
                "high": max(bests, default=None),
                "runs": len(bests),
            }
        )
    return rows


def _steps(most: float, *, is_whole: bool) -> list[float]:
    """Return equally spaced budgets from 0 to ``most``, each once."""
    steps = range(_STEPS + 1)
    return sorted({most * step // _STEPS if is_whole else most * (step / _STEPS) for step in steps})


def _best(curve: Sequence[Point], axis: str, at: float) -> float | None:
    """Return the last score that a curve had reached; None if it had none."""
    reached = [score for totals, score in curve if getattr(totals, axis) <= at]
    return reached[-1] if reached else None


def _table(axis: str, rows: Sequence[dict[str, Any]]) -> Table:
    return Table(
        title=f"Best score so far against {_LABELS[axis]}",
        columns=((axis, "at"), "median", ("lowest", "low"), ("highest", "high"), "runs"),
        rows=rows,
    )
