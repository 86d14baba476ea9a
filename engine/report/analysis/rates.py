"""``analysis=operators`` and ``analysis=parents``: how often children improve, group by group.

Covers: the counts of a group of trials, and the improvement rate with its interval, which other
analyses show too; the groups by operator, and by the way to choose parents. Such a way is the
settings under ``search.parent`` that a run has, and the rule that each call records: the one of the
policy that drew the parent, or why another one was taken (`engine.store.Call`).

A child improves if its score is better than its parent's; children that were refused or failed did
not. The interval takes children for independent; those of one call share parent and prompt, so it
is a little narrow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from engine.report.analysis.runs import RunRecord, Trial
from engine.report.analysis.statistics import grouped, wilson
from engine.report.analysis.table import Column, Findings, Table, percent, share
from engine.settings import RunSettings

INTERVAL: tuple[Column, ...] = (
    ("rate", share("rate")),
    ("from", lambda row: percent(row["interval_95"][0])),
    ("to", lambda row: percent(row["interval_95"][1])),
)
"""Columns of an improvement rate (`rate_of`)."""

OUTCOMES: tuple[Column, ...] = (
    *("children", "evaluated", "valid", "improved"),
    *(*INTERVAL, "new_bests"),
)
"""Columns of what came of children (`rate_of`)."""

COSTS: tuple[Column, ...] = (
    ("tokens/child", lambda row: row["generated_tokens"] / max(1, row["children"])),
    ("model s/child", lambda row: row["llm_seconds"] / max(1, row["children"])),
)
"""Columns of what children cost (`rate_of`)."""

NOTE = (
    "improved: better than its parent; rate: of the children, with its 95 % Wilson interval, which "
    "takes them for independent."
)


def operators(runs: Sequence[RunRecord]) -> Findings:
    """Count the children of all runs by operator."""
    keyed = ((trial.child.operator, trial) for run in runs for trial in run.trials)
    rates = {operator: rate_of(trials) for operator, trials in grouped(keyed).items()}
    table = Table(
        title="Improvement rate per operator",
        columns=("operator", *OUTCOMES, *COSTS),
        rows=[{"operator": operator, **rate} for operator, rate in rates.items()],
        note=NOTE,
    )
    return Findings(figures={"operators": rates}, tables=(table,))


def parents(runs: Sequence[RunRecord]) -> Findings:
    """Count the children of all runs by the policy and the rule that chose their parents."""
    keyed = (
        ((_policy(run.settings), trial.call.rule), trial) for run in runs for trial in run.trials
    )
    rates = [
        {"policy": policy, "rule": rule, **rate_of(trials)}
        for (policy, rule), trials in grouped(keyed).items()
    ]
    table = Table(
        title="Improvement rate per parent policy and rule",
        columns=("policy", "rule", *OUTCOMES, *COSTS),
        rows=rates,
        note=NOTE,
    )
    return Findings(figures={"parents": rates}, tables=(table,))


def rate_of(trials: Sequence[Trial]) -> dict[str, Any]:
    """Return what came of a group of children, as figures.

    ``evaluated`` counts those with a verdict, ``valid`` those with a score, ``improved`` those that
    were better than their parents, ``new_bests`` those that were better than all before in their
    run. ``rate`` is that of the improved children, None without any child, ``interval_95`` its
    interval. ``generated_tokens`` and ``llm_seconds`` are sums over all children.
    """
    children, improved = len(trials), sum(each.is_better for each in trials)
    return {
        "children": children,
        "evaluated": sum(each.is_evaluated for each in trials),
        "valid": sum(each.score is not None for each in trials),
        "improved": improved,
        "new_bests": sum(each.is_best for each in trials),
        "generated_tokens": sum(each.child.generated_tokens for each in trials),
        "llm_seconds": sum(each.child.llm_seconds for each in trials),
        "rate": improved / children if children else None,
        "interval_95": list(wilson(improved, children)),
    }


def _policy(settings: RunSettings) -> str:
    """Return the settings of the parents' choice, in one line."""
    values = dataclasses.asdict(settings.search.parent)
    return " ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in values.items()
    )
