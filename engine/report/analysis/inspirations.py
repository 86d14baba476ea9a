"""How far a parent is from the programs shown beside it, and how often its children improve.

TurboEvolve's interaction of distance and K (section 6.3): for each call the distance of the parent
from its inspirations, cut into deciles within each run, and by decile and K whether any child is
better than the parent, and by how much the best one is. Calls are first put together within a run,
so that children of one call do not count as independent, and then over the runs.

Inspirations are the programs with a score that the prompt shows besides the parent, as the call's
event lists them; the distance is the mean of those from each (``program_distance.py``). Calls
without any are left out. As the source says: K follows from how the run goes, so this describes,
and does not compare widths.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from engine.report.analysis.program_distance import program_distance
from engine.report.analysis.runs import RunRecord, Trial
from engine.report.analysis.statistics import median
from engine.report.analysis.table import Table, percent
from engine.store import Call

DECILES = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class _Told:
    """A call with inspirations: their distance, whether a child improved, and the best gain."""

    k: int
    distance: float
    improves: bool
    best_gain: float | None


def by_inspirations(runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Return a row for each decile of the distance and each K, in order."""
    cells: dict[tuple[int, int], list[list[_Told]]] = {}  # calls by run
    for run in runs:
        of_run: dict[tuple[int, int], list[_Told]] = {}
        told = list(_told(run))
        distances = sorted(each.distance for each in told)
        for each in told:
            decile = DECILES * bisect.bisect_left(distances, each.distance) // len(distances)
            of_run.setdefault((decile, each.k), []).append(each)
        for cell, calls in of_run.items():
            cells.setdefault(cell, []).append(calls)
    return [_row(*cell, calls) for cell, calls in sorted(cells.items())]


def inspirations_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Return the rows as a table."""
    return Table(
        title="Improving calls by distance of the parent from what is shown beside it, and K",
        columns=("decile", "K", "distance", "calls", "runs", "improving", "best gain"),
        rows=[
            (
                *(row["decile"], row["k"], round(row["median_distance"], 4)),
                *(row["calls"], row["runs"], percent(row["improving"]), row["best_gain"]),
            )
            for row in rows
        ],
        note="decile: of the distance within the run, 1 for the nearest; improving: share of the "
        "calls with a child better than the parent; best gain: of a call's best child, mean; both "
        "within a run, the median over the runs.",
    )


def _told(run: RunRecord) -> Iterator[_Told]:
    of_call: dict[int, list[Trial]] = {}
    for trial in run.trials:
        of_call.setdefault(trial.call.iteration, []).append(trial)
    for trials in of_call.values():
        call = trials[0].call
        distance = _distance(run, call)
        if distance is not None:
            gains = [each.gain for each in trials if each.gain is not None]
            yield _Told(
                k=call.k,
                distance=distance,
                improves=any(each.is_better for each in trials),
                best_gain=max(gains, default=None),
            )


def _distance(run: RunRecord, call: Call) -> float | None:
    verdicts, program_of = run.history.verdicts, run.history.program_of
    shown = [each for each in call.shown if each in verdicts and verdicts[each].score is not None]
    parent = program_of(call.parent)
    found = [program_distance(parent, program_of(each)) for each in shown]
    return sum(found) / len(found) if found else None


def _row(decile: int, k: int, runs: Sequence[Sequence[_Told]]) -> dict[str, Any]:
    gains = [_mean([each.best_gain for each in calls]) for calls in runs]
    return {
        "decile": decile + 1,
        "k": k,
        "median_distance": median([each.distance for calls in runs for each in calls]),
        "calls": sum(map(len, runs)),
        "runs": len(runs),
        "improving": median([sum(each.improves for each in calls) / len(calls) for calls in runs]),
        "best_gain": median([each for each in gains if each is not None]),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    there = [each for each in values if each is not None]
    return sum(each / len(there) for each in there) if there else None
