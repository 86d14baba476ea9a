"""Analyses of recorded runs, by the names that ``python -m engine.report`` takes."""

from collections.abc import Callable, Mapping, Sequence

from engine.report.analysis.curves import coverage, progress
from engine.report.analysis.distance import distance
from engine.report.analysis.figures import Table
from engine.report.analysis.learning import learning
from engine.report.analysis.ranks import ranks
from engine.report.analysis.rates import operators, parents
from engine.report.analysis.replay import replay
from engine.report.analysis.runs import GrowingRun, RunRecord, growing_run, read_runs, record_of

ANALYSES: dict[str, Callable[[Sequence[RunRecord], int], Mapping[str, Table]]] = {
    "progress": lambda runs, top: progress(runs),
    "replay": lambda runs, top: replay(runs, top=top),
    "ranks": lambda runs, top: ranks(runs),
    "distance": lambda runs, top: distance(runs),
    "coverage": lambda runs, top: coverage(runs),
    "operators": lambda runs, top: operators(runs),
    "parents": lambda runs, top: parents(runs),
    "learning": lambda runs, top: learning(runs),
}
"""By name: runs, and how many programs the replay shows, to tables by name."""
