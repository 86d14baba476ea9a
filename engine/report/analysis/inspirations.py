"""How far a parent is from the programs shown beside it, and how often its children improve.

TurboEvolve's interaction of distance and K (section 6.3). For each call there is the distance of
the parent from its inspirations, cut into deciles within each run. For each decile and K the table
says how often any child is better than the parent, and by how much the best one is. Calls are
averaged within a run first and then over the runs, so that siblings do not count as independent.

Inspirations are the programs with a score that the prompt shows besides the parent, as the call's
event lists them. The distance is the mean of the distances from each (``program_distance.py``).
Calls without inspirations are left out. As the source says, K depends on how the run goes, so the
table describes, and does not compare widths.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from engine.report.analysis.program_distance import program_distance
from engine.report.analysis.runs import RunRecord
from engine.report.analysis.statistics import grouped, mean, median
from engine.report.analysis.table import Table, share
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
    cells: list[tuple[tuple[int, int], list[_Told]]] = []  # calls of a run
    for run in runs:
        told = list(_told(run))
        distances = sorted(each.distance for each in told)
        deciles = (
            DECILES * bisect.bisect_left(distances, each.distance) // len(distances)
            for each in told
        )
        of_run = (((decile, each.k), each) for decile, each in zip(deciles, told, strict=True))
        cells += grouped(of_run).items()
    return [_row(decile, k, calls) for (decile, k), calls in grouped(cells).items()]


def inspirations_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Return the rows as a table."""
    return Table(
        title="Improving calls by distance of the parent from what is shown beside it, and K",
        columns=(
            *("decile", ("K", "k"), ("distance", "median_distance"), "calls", "runs"),
            *(("improving", share("improving")), "best_gain"),
        ),
        rows=rows,
        note="decile: of the distance within the run, 1 for the nearest; improving: share of the "
        "calls with a child better than the parent; best gain: of a call's best child, mean; both "
        "within a run, the median over the runs.",
    )


def _told(run: RunRecord) -> Iterator[_Told]:
    for trials in grouped((trial.call.iteration, trial) for trial in run.trials).values():
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
    return mean([program_distance(parent, program_of(each)) for each in shown])


def _row(decile: int, k: int, runs: Sequence[Sequence[_Told]]) -> dict[str, Any]:
    gains = [
        mean([each.best_gain for each in calls if each.best_gain is not None]) for calls in runs
    ]
    return {
        "decile": decile + 1,
        "k": k,
        "median_distance": median([each.distance for calls in runs for each in calls]),
        "calls": sum(map(len, runs)),
        "runs": len(runs),
        "improving": median([sum(each.improves for each in calls) / len(calls) for calls in runs]),
        "best_gain": median([each for each in gains if each is not None]),
    }
