"""``analysis=distance``: how far children are from their parents, against K and temperature.

Covers: every child from whose completion a program could be read, refused ones too, by the width of
its call and by its temperature; how often children improve, by distance and K; and the same by
TurboEvolve's distance, that of the parent from the programs shown beside it (``inspirations.py``).
Distances are those of ``program_distance.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.report.analysis.inspirations import by_inspirations, inspirations_table
from engine.report.analysis.program_distance import program_distance
from engine.report.analysis.rates import grouped, rate_of
from engine.report.analysis.runs import RunRecord, Trial
from engine.report.analysis.statistics import median, quartiles
from engine.report.analysis.table import Findings, Table, percent

_CLASSES = 5
_FEW = 16  # values that are shown one by one: the temperatures of calls of the same K

Bounds = tuple[float, float]
"""Of a class of values: above the first (or equal to it, in the lowest class, and in one of a
single value), up to the second."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Measured:
    """A child with a program, and how far it is from its parent."""

    trial: Trial
    distance: float

    @property
    def k(self) -> int:
        return self.trial.call.k


def distance(runs: Sequence[RunRecord]) -> Findings:
    """Measure the children of all runs."""
    measured = [
        _Measured(trial=trial, distance=between)
        for run in runs
        for trial in run.trials
        if (between := distance_to_parent(run, trial)) is not None
    ]
    by_k = _by_k(measured)
    by_temperature = _by_temperature(measured)
    by_distance = _by_distance(measured)
    by_shown = by_inspirations(runs)
    figures = {
        "by_k": by_k,
        "by_temperature": by_temperature,
        "by_distance": by_distance,
        "by_shown": by_shown,
    }
    return Findings(
        figures=figures,
        tables=(
            _distances("Distance of children from their parents, by K", "K", by_k),
            _distances("The same, by temperature and K", "temperature", by_temperature),
            Table(
                title="Improvement rate by distance and K",
                columns=("distance", "K", "children", "improved", "rate", "from", "to"),
                rows=[
                    (
                        *(_range(row["distance"]), row["k"], row["children"], row["improved"]),
                        *map(percent, (row["rate"], *row["interval_95"])),
                    )
                    for row in by_distance
                ],
                note="improved: better than its parent; the rate with its 95 % Wilson interval.",
            ),
            inspirations_table(by_shown),
        ),
    )


def distance_to_parent(run: RunRecord, trial: Trial) -> float | None:
    """Return how far a child is from its parent; None for a child without a program."""
    if trial.child.program is None:
        return None
    return program_distance(trial.child.program, run.history.program_of(trial.child.parent))


def _by_k(measured: Sequence[_Measured]) -> list[dict[str, Any]]:
    groups: dict[int, list[float]] = {}
    for each in measured:
        groups.setdefault(each.k, []).append(each.distance)
    return [{"k": k, **_spread(distances)} for k, distances in sorted(groups.items())]


def _by_temperature(measured: Sequence[_Measured]) -> list[dict[str, Any]]:
    """Return the distances by temperature, in classes of equal width, and K."""
    temperatures = [t for each in measured if (t := each.trial.temperature) is not None]
    rows = []
    for low, high in _classes(temperatures):
        groups: dict[int, list[float]] = {}
        for each in measured:
            if _holds((low, high), each.trial.temperature, lowest=min(temperatures)):
                groups.setdefault(each.k, []).append(each.distance)
        rows += [
            {"temperature": [low, high], "k": k, **_spread(distances)}
            for k, distances in sorted(groups.items())
        ]
    return rows


def _by_distance(measured: Sequence[_Measured]) -> list[dict[str, Any]]:
    """Return how often children improve, by distance, in classes of equal width, and K."""
    distances = [each.distance for each in measured]
    rows = []
    for bounds in _classes(distances):
        inside = [
            (each.k, each.trial)
            for each in measured
            if _holds(bounds, each.distance, lowest=min(distances))
        ]
        rows += [
            {"distance": list(bounds), "k": k, **rate_of(trials).figures()}
            for k, trials in sorted(grouped(inside).items())
        ]
    return rows


def _classes(values: Sequence[float]) -> list[Bounds]:
    """Return bounds of classes of equal width over all ``values``; of a few, each of them."""
    distinct = sorted(set(values))
    if len(distinct) <= _FEW:
        return [(each, each) for each in distinct]
    low, high = distinct[0], distinct[-1]
    steps = [low + (high - low) * (step / _CLASSES) for step in range(_CLASSES)]
    return list(zip(steps, [*steps[1:], high], strict=True))


def _holds(bounds: Bounds, value: float | None, *, lowest: float) -> bool:
    low, high = bounds
    is_first = low in (high, lowest)
    return value is not None and (low < value <= high or (is_first and value == low))


def _spread(distances: Sequence[float]) -> dict[str, Any]:
    return {
        "children": len(distances),
        "median": median(distances),
        "quartiles": quartiles(distances),
    }


def _range(bounds: Sequence[float]) -> str:
    low, high = bounds
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _distances(title: str, first: str, rows: Sequence[dict[str, Any]]) -> Table:
    heads = ("children", "median", "25 %", "75 %")
    columns = (first, *heads) if first == "K" else (first, "K", *heads)
    return Table(
        title=title,
        columns=columns,
        rows=[
            (
                *((row["k"],) if first == "K" else (_range(row["temperature"]), row["k"])),
                *(row["children"], round(row["median"], 4)),
                *(round(each, 4) for each in row["quartiles"]),
            )
            for row in rows
        ],
    )
