"""What became of the children of a run, by operator, by the rule that chose their parent, by K."""

from collections.abc import Callable, Sequence

from engine.report.analysis import RunRecord
from engine.report.analysis.figures import Table, grouped
from engine.report.analysis.rates import JUDGED, rate
from engine.report.analysis.runs import Trial
from engine.report.tables.programs import Row

_NOTE = JUDGED + (
    "improved: better than its parent; rate: of the children, with its 95 % Wilson interval, which "
    "takes them for independent; new bests: better than all before in their run."
)


def operators(runs: Sequence[RunRecord]) -> Table:
    """Return a row for each operator of each run."""
    rows = _rates(runs, "operator", lambda trial: trial.child.operator)
    return Table(title="Improvement by operator", rows=rows, note=_NOTE)


def rules(runs: Sequence[RunRecord]) -> Table:
    """Return a row for each rule that chose parents in each run."""
    rows = _rates(runs, "rule", lambda trial: trial.call.rule)
    return Table(title="Improvement by the rule that chose the parent", rows=rows, note=_NOTE)


def widths(runs: Sequence[RunRecord]) -> Table:
    """Return a row for each K of each run."""
    rows = _rates(runs, "k", lambda trial: trial.call.k)
    return Table(title="Improvement by K", rows=rows, note=_NOTE)


def _rates(runs: Sequence[RunRecord], column: str, key: Callable[[Trial], int | str]) -> list[Row]:
    return [
        {"run": run.name, column: group[0], **rate(trials)}
        for run in runs
        for group, trials in grouped(((key(trial),), trial) for trial in run.judged).items()
    ]
