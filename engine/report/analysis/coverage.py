"""``analysis=coverage``: how much of the space of programs a run has filled, and how well.

Covers: the cells of a MAP-Elites archive (``engine.search.archive``), filled from the log, so of
any run; against evaluated candidates. As in TurboEvolve (section 6) coverage is the number of
filled cells, and quality the mean score of their best programs. There is one archive for each run,
over all its islands.

Its features are those of the runs' own archives (``search.archive``), where all runs that have one
have the same; those that a problem names are read from its folder as it is now. The cells of such
runs are those that they recorded. Otherwise the features are the size and the depth of the
programs' syntax trees, over the ranges of all valid programs of all runs given, cut into equal
bins: then only figures of one report compare.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.core import Candidate, Feature
from engine.report.analysis.runs import RunRecord
from engine.report.analysis.statistics import mean, median
from engine.report.analysis.table import Findings, Table
from engine.search.archive import Archive
from engine.search.features import Cell, cell_of, measure
from engine.search.population import FIRST_ITERATION
from engine.search.roster import Place
from engine.store import Verdict
from engine.syntax import read

_MEASURES = ("nodes", "depth")
_BINS = 10
_STEPS = 10  # into which the candidates are divided


@dataclass(frozen=True, kw_only=True, slots=True)
class _Valid:
    """A program with a score, and what an archive wants to know of it."""

    candidate: Candidate
    place: Place
    verdict: Verdict
    evaluated: int  # candidates when its verdict came


def coverage(runs: Sequence[RunRecord]) -> Findings:
    """Fill an archive for each run, candidate by candidate."""
    valid = [list(_programs(run)) for run in runs]
    features = _own_features(runs) or _ranges_of(itertools.chain.from_iterable(valid))
    most = max(run.end.candidates for run in runs)
    steps = sorted({most * step // _STEPS for step in range(_STEPS + 1)})
    snapshots = [
        list(_snapshots(run, programs, features, steps))
        for run, programs in zip(runs, valid, strict=True)
    ]
    together = [_together(at, snapshots) for at in steps]
    cells = " and ".join(
        f"{each.name} from {each.low:g} to {each.high:g} in {each.bins} bins" for each in features
    )
    table = Table(
        title="Filled cells of the archive against evaluated candidates",
        columns=(
            *("candidates", ("median", "median_cells"), ("lowest", "low_cells")),
            *(("highest", "high_cells"), ("quality", "median_quality"), "runs"),
        ),
        rows=together,
        note=f"cells: {cells}; quality: the mean score of the cells' best programs, the median "
        "over the runs.",
    )
    figures = {
        "features": {each.name: [each.low, each.high, each.bins] for each in features},
        "runs": [
            {"run": run.name, "snapshots": rows} for run, rows in zip(runs, snapshots, strict=True)
        ],
        "together": together,
    }
    return Findings(figures=figures, tables=(table,))


def _programs(run: RunRecord) -> Iterator[_Valid]:
    """Yield the programs with a score in the order of their verdicts."""
    for name, verdict in run.history.verdicts.items():
        if verdict.score is not None:
            child = run.history.children.get(name)
            program = run.history.program_of(name)
            yield _Valid(
                candidate=Candidate(id=name, program=program, score=verdict.score),
                place=(child.iteration, child.index, name) if child else (FIRST_ITERATION, 0, name),
                verdict=verdict,
                evaluated=run.totals[name].candidates,
            )


def _own_features(runs: Sequence[RunRecord]) -> tuple[Feature, ...]:
    """Return the features of the runs' own archives; none if there are none, or several kinds."""
    kinds = {run.features for run in runs if run.features is not None}
    return kinds.pop() if len(kinds) == 1 else ()


def _ranges_of(programs: Iterable[_Valid]) -> tuple[Feature, ...]:
    """Return the dimensions, each over the range of the values that there are."""
    values = [measure(read(each.candidate.program), metrics={}) for each in programs]
    features = []
    for name in _MEASURES:
        found = [each[name] for each in values if name in each]
        low, high = min(found, default=0.0), max(found, default=0.0)
        high = high if high > low else low + 1
        features.append(Feature(name=name, low=low, high=high, bins=_BINS))
    return tuple(features)


def _snapshots(
    run: RunRecord, programs: Sequence[_Valid], features: tuple[Feature, ...], steps: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Yield what a run's archive held after each number of candidates, as far as the run went."""
    archive = Archive(features=features, direction=run.direction)
    told = 0
    for at in steps:
        if at > run.end.candidates:
            return
        while told < len(programs) and programs[told].evaluated <= at:
            valid = programs[told]
            archive.tell(valid.candidate, place=valid.place, cell=_cell(run, valid, features))
            told += 1
        scores = [elite.score for elite in archive.elites]
        yield {"candidates": at, "cells": len(scores), "quality": mean(scores)}


def _cell(run: RunRecord, valid: _Valid, features: tuple[Feature, ...]) -> Cell | None:
    if run.features == features:
        return valid.verdict.cell
    return cell_of(read(valid.candidate.program), valid.verdict.evaluation, features=features)


def _together(at: int, snapshots: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Return the runs' cells and quality after so many candidates."""
    rows = [row for rows in snapshots for row in rows if row["candidates"] == at]
    cells = [row["cells"] for row in rows]
    return {
        "candidates": at,
        "median_cells": median(cells),
        "low_cells": min(cells),
        "high_cells": max(cells),
        "median_quality": median([q for row in rows if (q := row["quality"]) is not None]),
        "runs": len(rows),
    }
