"""``analysis=parents``: how often children improve under each way to choose their parents.

A way is the settings under ``search.parent`` that a run has, and the rule that each call records:
the one of the policy that drew the parent, or why another one was taken (`engine.store.Call`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from engine.report.analysis.rates import COLUMNS, NOTE, grouped, rate_of
from engine.report.analysis.runs import RunRecord
from engine.report.analysis.table import Findings, Table
from engine.settings import RunSettings


def parents(runs: Sequence[RunRecord]) -> Findings:
    """Count the children of all runs by the policy and the rule that chose their parents."""
    keyed = (
        ((_policy(run.settings), trial.call.rule), trial) for run in runs for trial in run.trials
    )
    rates = {key: rate_of(trials) for key, trials in sorted(grouped(keyed).items())}
    table = Table(
        title="Improvement rate per parent policy and rule",
        columns=("policy", "rule", *COLUMNS),
        rows=[(*key, *rate.cells()) for key, rate in rates.items()],
        note=NOTE,
    )
    figures = [
        {"policy": policy, "rule": rule, **rate.figures()} for (policy, rule), rate in rates.items()
    ]
    return Findings(figures={"parents": figures}, tables=(table,))


def _policy(settings: RunSettings) -> str:
    """Return the settings of the parents' choice, in one line."""
    values = dataclasses.asdict(settings.search.parent)
    return " ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in values.items()
    )
