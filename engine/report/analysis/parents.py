"""``analysis=parents``: how often children improve under each way to choose their parents.

A way is the settings under ``search.parent`` that a run has; calls whose parent was taken because
its prompt was cached (``search.prefer_cached``) count apart.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from engine.report.analysis.rates import COLUMNS, NOTE, grouped, rate_of
from engine.report.analysis.runs import RunRecord, Trial
from engine.report.analysis.table import Findings, Table
from engine.settings import RunSettings


def parents(runs: Sequence[RunRecord]) -> Findings:
    """Count the children of all runs by the policy that chose their parents."""
    keyed = (
        ((_policy(run.settings), _taken(trial)), trial) for run in runs for trial in run.trials
    )
    rates = {key: rate_of(trials) for key, trials in sorted(grouped(keyed).items())}
    table = Table(
        title="Improvement rate per parent policy",
        columns=("policy", "parent", *COLUMNS),
        rows=[(*key, *rate.cells()) for key, rate in rates.items()],
        note=NOTE,
    )
    figures = [
        {"policy": policy, "parent": taken, **rate.figures()}
        for (policy, taken), rate in rates.items()
    ]
    return Findings(figures={"parents": figures}, tables=(table,))


def _policy(settings: RunSettings) -> str:
    """Return the settings of the parents' choice, in one line."""
    values = dataclasses.asdict(settings.search.parent)
    return " ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in values.items()
    )


def _taken(trial: Trial) -> str:
    return "drawn" if trial.call.preference is None else "cached"
