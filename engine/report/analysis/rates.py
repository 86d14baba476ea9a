"""``analysis=operators`` and ``parents``: what became of children, group by group.

Covers: the groups by operator; by the way to choose parents; and by place in the call for each K,
for ``ranks``. A way to choose parents is the settings under ``search.parent`` that a run has, and
the rule that each call records: the one of the policy that drew the parent, or why another one was
taken (`engine.store.Call`, which says where the best program takes the place of what was drawn).

A child improves if its score is better than its parent's; children that were refused or failed did
not. Those that nobody judged are left out (`Trial.is_judged`). The interval takes children for
independent; those of one call share parent and prompt, so it is a little narrow.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.report.analysis.distance import program_distance
from engine.report.analysis.figures import Share, Table, grouped, median, wilson
from engine.report.analysis.runs import RunRecord, Trial
from engine.settings import RunSettings

JUDGED = (
    "children: without those that nobody judged, since the budget was spent, the engine failed or "
    "they are not evaluated yet; "
)
"""Of the notes of tables that count children."""
_NOTE = JUDGED + (
    "improved: better than its parent; rate: of the children, with its 95 % Wilson interval, which "
    "takes them for independent; new bests: better than all before in their run; gain: score over "
    "the parent's, of valid children; distance: from the parent; tokens, model s: of a child."
)


def operators(runs: Sequence[RunRecord]) -> dict[str, Table]:
    """Count the judged children of all runs by operator."""
    title = "Improvement rate per operator"
    return {"operators": _rates(runs, title, lambda run, trial: {"operator": trial.child.operator})}


def parents(runs: Sequence[RunRecord]) -> dict[str, Table]:
    """Count the children of all runs by the policy and the rule that chose their parents."""

    def key(run: RunRecord, trial: Trial) -> dict[str, str]:
        return {"policy": _policy(run.settings), "rule": trial.call.rule}

    return {"parents": _rates(runs, "Improvement rate per parent policy and rule", key)}


def places(runs: Sequence[RunRecord]) -> Table:
    """Count the children of all runs by K and their place in their call."""

    def key(run: RunRecord, trial: Trial) -> dict[str, int]:
        return {"K": trial.call.k, "place": trial.place}

    return _rates(runs, "Place among the children of a call", key)


def _rates(
    runs: Sequence[RunRecord], title: str, key: Callable[[RunRecord, Trial], Mapping[str, Any]]
) -> Table:
    """Return a row for each group of children: what ``key`` says of them, and its `_rate`."""
    keyed = ((tuple(key(run, each).items()), each) for run in runs for each in run.judged)
    rows = [{**dict(group), **_rate(trials)} for group, trials in grouped(keyed).items()]
    return Table(title=title, rows=rows, note=_NOTE)


def rate(trials: Sequence[Trial]) -> dict[str, Any]:
    """Return what became of a group of children, at least one, as counts and a rate."""
    children, improved = len(trials), sum(each.is_better for each in trials)
    low, high = wilson(improved, children)
    return {
        "children": children,
        "evaluated": sum(each.verdict is not None for each in trials),
        "valid": sum(each.score is not None for each in trials),
        "improved": improved,
        "rate": Share(improved / children),
        "from": Share(low),
        "to": Share(high),
        "new_bests": sum(each.is_best for each in trials),
    }


def _rate(trials: Sequence[Trial]) -> dict[str, Any]:
    """Return `rate`, and what the children gained and cost, and how far they went."""
    distances = [
        program_distance(each.child.program.text, each.parent_program)
        for each in trials
        if each.child.program is not None
    ]
    children = len(trials)
    return {
        **rate(trials),
        "median_gain": median([each.gain for each in trials if each.gain is not None]),
        "median_distance": median(distances),
        "tokens": sum(each.child.generated_tokens for each in trials) / children,
        "model_s": sum(each.child.llm_seconds for each in trials) / children,
    }


def _policy(settings: RunSettings) -> str:
    """Return the settings of the parents' choice, in one line."""
    values = dataclasses.asdict(settings.search.parent)
    return " ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in values.items()
    )
