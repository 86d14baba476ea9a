"""``analysis=progress`` and ``coverage``: what runs had reached at equal budgets.

Several runs are put together as far as all of them went: what the longer ones alone reached would
read as a jump of the median.

*Progress*: the best score of each run against evaluated candidates, generated tokens, wall seconds
and money, and over several runs its median and extremes at equal budgets.

*Coverage*: the cells of a MAP-Elites archive (``engine.search.archive``), filled from the log, so
of any run; against evaluated candidates. As in TurboEvolve (section 6) coverage is the number of
filled cells, and quality the mean score of their best programs. There is one archive for each run,
over all its islands. Its features are those of the runs' own archives (``search.archive``), where
all runs that have one have the same; those that a problem names are read from its folder as it is
now. The cells of such runs are those that they recorded. Otherwise it is the archive of
``search.archive=structure``.
"""

from collections.abc import Sequence
from typing import Any

from engine.core import INITIAL, Cell, Feature
from engine.report.analysis.figures import Table, mean, median, spread
from engine.report.analysis.runs import RunRecord, Totals
from engine.search.features import cell_of, dimensions
from engine.syntax import read

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
    note = "As far as the shortest of the runs went." if len(runs) > 1 else ""
    tables = {
        axis: Table(
            title=f"Best score so far against {words}", rows=_rows(axis, followed), note=note
        )
        for axis, words in _AXES.items()
        if all(run.end[axis] > 0 for run in runs)  # most runs' tokens have no prices
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
    """Return what the runs had reached at equally spaced budgets up to the shortest run's end."""
    most = min(run.end[axis] for run, _ in followed)
    is_whole = isinstance(most, int)
    steps = {most * i // _STEPS if is_whole else most * (i / _STEPS) for i in range(_STEPS + 1)}
    rows = []
    for at in sorted(steps):
        reached = [
            [score for score, totals in curve if totals[axis] <= at] for _, curve in followed
        ]
        bests = [scores[-1] for scores in reached if scores]
        rows.append({axis: at, **spread(bests), "runs": len(bests)})
    return rows


def coverage(runs: Sequence[RunRecord]) -> dict[str, Table]:
    """Fill an archive for each run, candidate by candidate."""
    features = shared_features(runs)
    ends = [int(run.end["candidates"]) for run in runs]
    steps = sorted({max(ends) * step // _STEPS for step in range(_STEPS + 1)} | {min(ends)})
    rows = [row for run in runs for row in _snapshots(run, features, steps)]
    return {
        "together": Table(
            title="Filled cells of the archive against evaluated candidates",
            rows=[
                _together([row for row in rows if row["candidates"] == at])
                for at in steps
                if at <= min(ends)
            ],
            note="quality: the mean score of the cells' best programs, the median over the runs.",
        ),
        "runs": Table(title="The same, of each run", rows=rows),
        "features": Table(
            title="Features of the archive",
            rows=[
                {"feature": each.name, "from": each.low, "to": each.high, "bins": each.bins}
                for each in features
            ],
        ),
    }


def shared_features(runs: Sequence[RunRecord]) -> tuple[Feature, ...]:
    """Return the features of the runs' own archives, or the structure if they do not agree."""
    kinds = {run.features for run in runs if run.features is not None}
    if len(kinds) == 1:
        return kinds.pop()
    initial = runs[0].history.program_of(INITIAL)
    return dimensions("structure", initial_program=initial, declared=()) or ()


def _snapshots(
    run: RunRecord, features: tuple[Feature, ...], steps: Sequence[int]
) -> list[dict[str, Any]]:
    """Return what a run's archive held after each number of candidates, as far as the run went."""
    filled = [
        (run.totals[verdict.candidate]["candidates"], cell, verdict.score)
        for verdict in run.history.verdicts.values()
        if verdict.score is not None
        and (cell := cell_at(run, verdict.candidate, features)) is not None
    ]
    rows = []
    for at in steps:
        if at > run.end["candidates"]:
            break
        elites: dict[Cell, float] = {}
        for candidates, cell, score in filled:
            if candidates <= at:
                scores = (score, elites.get(cell, score))
                elites[cell] = min(scores, key=run.history.direction.key)
        quality = mean(list(elites.values()))
        rows.append({"run": run.name, "candidates": at, "cells": len(elites), "quality": quality})
    return rows


def cell_at(run: RunRecord, candidate: str, features: tuple[Feature, ...]) -> Cell | None:
    """Return the cell of a candidate with a verdict, as recorded or as its program says."""
    verdict = run.history.verdicts[candidate]
    if run.features == features:
        return verdict.cell
    program = read(run.history.program_of(verdict.candidate))
    return cell_of(program, verdict.evaluation, features=features)


def _together(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the runs' cells and quality after so many candidates."""
    cells = [row["cells"] for row in rows]
    return {
        "candidates": rows[0]["candidates"],
        **spread(cells),
        "quality": median([row["quality"] for row in rows if row["quality"] is not None]),
        "runs": len(rows),
    }
