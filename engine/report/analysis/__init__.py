"""Analyses of recorded runs, one a file, by the names that ``python -m engine.report`` takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.report.analysis.clock import clock
from engine.report.analysis.coverage import coverage
from engine.report.analysis.distance import distance
from engine.report.analysis.progress import progress
from engine.report.analysis.ranks import ranks
from engine.report.analysis.rates import operators, parents
from engine.report.analysis.replay import replay
from engine.report.analysis.runs import RunRecord, read_runs, record_of
from engine.report.analysis.table import Findings

ANALYSES: dict[str, Callable[[Sequence[RunRecord], int], Findings]] = {
    "progress": lambda runs, top: progress(runs),
    "replay": lambda runs, top: replay(runs, top=top),
    "ranks": lambda runs, top: ranks(runs),
    "distance": lambda runs, top: distance(runs),
    "coverage": lambda runs, top: coverage(runs),
    "operators": lambda runs, top: operators(runs),
    "parents": lambda runs, top: parents(runs),
    "clock": lambda runs, top: clock(runs),
}
"""By name: runs, and of how many programs the replay is, to findings."""

__all__ = ["ANALYSES", "Findings", "RunRecord", "read_runs", "record_of"]
