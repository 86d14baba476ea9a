"""``analysis=distance``: how far children are from their parents, against K and temperature.

Covers: every child from whose completion a program could be read, refused ones too, by the width of
its call and by its temperature; how often children improve, by distance and K; and the same by
TurboEvolve's distance, that of the parent from the programs shown beside it (``inspirations.py``).
Distances are those of ``program_distance.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.report.analysis.inspirations import by_inspirations, inspirations_table
from engine.report.analysis.program_distance import program_distance
from engine.report.analysis.rates import INTERVAL, rate_of
from engine.report.analysis.runs import RunRecord, Trial
from engine.report.analysis.statistics import grouped, median, quartiles
from engine.report.analysis.table import Column, Findings, Row, Table

_CLASSES = 5
_FEW = 16  # values that are shown one by one: the temperatures of calls of the same K
_SPREAD: tuple[Column, ...] = (
    *("children", "median"),
    ("25 %", lambda row: row["quartiles"][0]),
    ("75 %", lambda row: row["quartiles"][1]),
)
_WIDTH: Column = ("K", "k")

Bounds = tuple[float, float]
"""Of a class of values: above the first (or equal to it, in the lowest class, and in one of a
single value), up to the second."""


def distance(runs: Sequence[RunRecord]) -> Findings:
    """Measure the children of all runs."""
    trials = [(run, trial) for run in runs for trial in run.trials]
    measured = [
        (trial, between)
        for run, trial in trials
        if (between := distance_to_parent(run, trial)) is not None
    ]
    by_shown = by_inspirations(runs)
    figures = {
        "by_k": [
            {"k": k, **_spread(distances)}
            for k, distances in grouped((trial.call.k, each) for trial, each in measured).items()
        ],
        "by_temperature": _by_temperature(measured),
        "by_distance": _by_distance(measured),
        "by_shown": by_shown,
    }
    return Findings(
        figures=figures,
        tables=(
            Table(
                title="Distance of children from their parents, by K",
                columns=(_WIDTH, *_SPREAD),
                rows=figures["by_k"],
            ),
            Table(
                title="The same, by temperature and K",
                columns=(_bounds("temperature"), _WIDTH, *_SPREAD),
                rows=figures["by_temperature"],
            ),
            Table(
                title="Improvement rate by distance and K",
                columns=(_bounds("distance"), _WIDTH, "children", "improved", *INTERVAL),
                rows=figures["by_distance"],
                note="improved: better than its parent; the rate with its 95 % Wilson interval.",
            ),
            inspirations_table(by_shown),
        ),
    )


def distance_to_parent(run: RunRecord, trial: Trial) -> float | None:
    """Return how far a child is from its parent; None for a child without a program."""
    if trial.child.program is None:
        return None
    return program_distance(trial.child.program.text, run.history.program_of(trial.child.parent))


def _by_temperature(measured: Sequence[tuple[Trial, float]]) -> list[dict[str, Any]]:
    """Return the distances by temperature, in classes of equal width, and K."""
    sampled = [
        (temperature, trial.call.k, between)
        for trial, between in measured
        if (temperature := trial.temperature) is not None
    ]
    classes = _classes([temperature for temperature, _, _ in sampled])
    groups = grouped(((*classes[t], k), between) for t, k, between in sampled)
    return [
        {"temperature": [low, high], "k": k, **_spread(distances)}
        for (low, high, k), distances in groups.items()
    ]


def _by_distance(measured: Sequence[tuple[Trial, float]]) -> list[dict[str, Any]]:
    """Return how often children improve, by distance, in classes of equal width, and K."""
    classes = _classes([between for _, between in measured])
    groups = grouped(((*classes[between], trial.call.k), trial) for trial, between in measured)
    return [
        {"distance": [low, high], "k": k, **rate_of(trials)}
        for (low, high, k), trials in groups.items()
    ]


def _classes(values: Sequence[float]) -> dict[float, Bounds]:
    """Return the class of each value: of equal width over all values; of a few, each its own."""
    distinct = sorted(set(values))
    if len(distinct) <= _FEW:
        return {each: (each, each) for each in distinct}
    edges = np.linspace(distinct[0], distinct[-1], _CLASSES + 1).tolist()
    above = np.searchsorted(edges[1:-1], distinct).tolist()
    return {each: (edges[i], edges[i + 1]) for each, i in zip(distinct, above, strict=True)}


def _spread(distances: Sequence[float]) -> dict[str, Any]:
    return {
        "children": len(distances),
        "median": median(distances),
        "quartiles": quartiles(distances),
    }


def _bounds(key: str) -> Column:
    """Return the column of a class's bounds."""

    def shown(row: Row) -> str:
        low, high = row[key]
        return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"

    return key, shown
