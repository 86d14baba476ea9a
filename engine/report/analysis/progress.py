"""``analysis=progress``: the best score so far against what it took.

Covers: the best of each run against evaluated candidates, generated tokens, wall seconds and money,
and over several runs its median and extremes at equal budgets. A run that ended before a budget was
used up does not count at that budget, whatever it had reached.
"""

from collections.abc import Sequence
from typing import Any

from engine.report.analysis.figures import Table, median
from engine.report.analysis.runs import RunRecord, Totals

_STEPS = 10  # into which an axis is divided
_AXES = {
    "candidates": "evaluated candidates",
    "tokens": "generated tokens",
    "seconds": "wall seconds",
    "money": "money",
}
"""What each of the `Totals` is, in words."""

Curve = list[tuple[float, Totals]]
"""The scores that were a run's best, each from these totals on; the initial one first."""


def progress(runs: Sequence[RunRecord]) -> dict[str, Table]:
    """Follow the best score of each run, and of all of them together."""
    followed: list[tuple[RunRecord, Curve]] = [
        (run, [(score, run.totals[name]) for name, score in run.bests.items()]) for run in runs
    ]
    tables = {
        axis: Table(title=f"Best score so far against {words}", rows=_rows(axis, followed))
        for axis, words in _AXES.items()
        if any(run.end[axis] > 0 for run in runs)  # most runs' tokens have no prices
    }
    points = [
        {"run": run.name, "best": best, **totals}
        for run, curve in followed
        for best, totals in curve
    ]
    ends = [{"run": run.name, "best": curve[-1][0], **run.end} for run, curve in followed]
    return {
        **tables,
        "points": Table(title="When each run's best score changed", rows=points),
        "ends": Table(title="What each run has used, and reached", rows=ends),
    }


def _rows(axis: str, followed: Sequence[tuple[RunRecord, Curve]]) -> list[dict[str, Any]]:
    """Return what the runs had reached at each of some equally spaced budgets."""
    most = max(run.end[axis] for run, _ in followed)
    is_whole = isinstance(most, int)
    steps = {most * i // _STEPS if is_whole else most * (i / _STEPS) for i in range(_STEPS + 1)}
    rows = []
    for at in sorted(steps):
        reached = [
            [score for score, totals in curve if totals[axis] <= at]
            for run, curve in followed
            if at <= run.end[axis]
        ]
        bests = [scores[-1] for scores in reached if scores]
        rows.append(
            {
                axis: at,
                "median": median(bests),
                "lowest": min(bests, default=None),
                "highest": max(bests, default=None),
                "runs": len(bests),
            }
        )
    return rows
