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
from engine.report.analysis.statistics import median
from engine.report.analysis.table import Findings, Table
from engine.search import FIRST_ITERATION
from engine.search.archive import Archive
from engine.search.features import Cell, cell_of, measure
from engine.search.population import Place
from engine.store import Verdict

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
    most = max((run.end.candidates for run in runs), default=0)
    steps = sorted({most * step // _STEPS for step in range(_STEPS + 1)})
    snapshots = [
        _snapshots(run, programs, features, steps)
        for run, programs in zip(runs, valid, strict=True)
    ]
    together = [_together(at, snapshots) for at in steps]
    ranges = {each.name: [each.low, each.high, each.bins] for each in features}
    return Findings(
        figures={
            "features": ranges,
            "runs": [
                {"run": run.name, "snapshots": rows}
                for run, rows in zip(runs, snapshots, strict=True)
            ],
            "together": together,
        },
        tables=(_table(together, features),),
    )


def _programs(run: RunRecord) -> Iterator[_Valid]:
    """Yield the programs with a score in the order of their verdicts."""
    for name, verdict in run.history.verdicts.items():
        if verdict.score is None:
            continue
        program = run.history.program_of(name)
        child = run.history.children.get(name)
        place = (FIRST_ITERATION, 0, name)
        if child is not None:
            place = (child.iteration, child.index, name)
        yield _Valid(
            candidate=Candidate(id=name, program=program, score=verdict.score),
            place=place,
            verdict=verdict,
            evaluated=run.totals[name].candidates,
        )


def _own_features(runs: Sequence[RunRecord]) -> tuple[Feature, ...]:
    """Return the features of the runs' own archives; none if there are none, or several kinds."""
    kinds = {run.features for run in runs if run.features is not None}
    return kinds.pop() if len(kinds) == 1 else ()


def _ranges_of(programs: Iterable[_Valid]) -> tuple[Feature, ...]:
    """Return the dimensions, each over the range of the values that there are."""
    values = [measure(each.candidate.program, metrics={}) for each in programs]
    features = []
    for name in _MEASURES:
        found = [each[name] for each in values if name in each]
        low, high = min(found, default=0.0), max(found, default=0.0)
        high = high if high > low else low + 1
        features.append(Feature(name=name, low=low, high=high, bins=_BINS))
    return tuple(features)


def _snapshots(
    run: RunRecord, programs: Sequence[_Valid], features: tuple[Feature, ...], steps: Sequence[int]
) -> list[dict[str, Any]]:
    """Return what a run's archive held after each number of candidates, as far as the run went."""
    archive = Archive(features=features, direction=run.direction)
    rest = iter([*programs, None])
    following = next(rest)
    rows = []
    for at in steps:
        if at > run.end.candidates:
            break
        while following is not None and following.evaluated <= at:
            cell = _cell(following, features, is_recorded=run.features == features)
            archive.tell(following.candidate, place=following.place, cell=cell)
            following = next(rest)
        scores = [elite.score for elite in archive.elites]
        quality = sum(score / len(scores) for score in scores) if scores else None
        rows.append({"candidates": at, "cells": len(scores), "quality": quality})
    return rows


def _cell(valid: _Valid, features: Sequence[Feature], *, is_recorded: bool) -> Cell | None:
    if is_recorded:
        return valid.verdict.cell
    return cell_of(valid.candidate.program, valid.verdict.evaluation(), features=features)


def _together(at: int, snapshots: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Return the runs' cells and quality after so many candidates."""
    rows = [next((row for row in rows if row["candidates"] == at), None) for rows in snapshots]
    there = [row for row in rows if row is not None]
    cells = [row["cells"] for row in there]
    return {
        "candidates": at,
        "median_cells": median(cells),
        "low_cells": min(cells, default=None),
        "high_cells": max(cells, default=None),
        "median_quality": median([q for row in there if (q := row["quality"]) is not None]),
        "runs": len(there),
    }


def _table(rows: Sequence[Mapping[str, Any]], features: Sequence[Feature]) -> Table:
    ranges = " and ".join(
        f"{each.name} from {each.low:g} to {each.high:g} in {each.bins} bins" for each in features
    )
    return Table(
        title="Filled cells of the archive against evaluated candidates",
        columns=("candidates", "median", "lowest", "highest", "quality", "runs"),
        rows=[tuple(row.values()) for row in rows],
        note=f"cells: {ranges}; quality: the mean score of the cells' best programs, the median "
        "over the runs.",
    )
