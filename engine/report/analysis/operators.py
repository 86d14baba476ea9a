"""``analysis=operators``: how often the children of each operator are better than their parents."""

from __future__ import annotations

from collections.abc import Sequence

from engine.report.analysis.rates import COLUMNS, NOTE, grouped, rate_of
from engine.report.analysis.runs import RunRecord
from engine.report.analysis.table import Findings, Table


def operators(runs: Sequence[RunRecord]) -> Findings:
    """Count the children of all runs by operator."""
    keyed = ((trial.child.operator, trial) for run in runs for trial in run.trials)
    rates = {operator: rate_of(trials) for operator, trials in sorted(grouped(keyed).items())}
    table = Table(
        title="Improvement rate per operator",
        columns=("operator", *COLUMNS),
        rows=[(operator, *rate.cells()) for operator, rate in rates.items()],
        note=NOTE,
    )
    figures = {operator: rate.figures() for operator, rate in rates.items()}
    return Findings(figures={"operators": figures}, tables=(table,))
