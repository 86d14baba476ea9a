"""How often children improve, group by group: what several analyses count.

Covers: the counts of a group of trials, and the improvement rate with its interval. A child
improves if its score is better than its parent's; children that were refused or failed did not. The
interval takes children for independent; those of one call share parent and prompt, so it is a
little narrow.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from engine.report.analysis.runs import Trial
from engine.report.analysis.statistics import wilson
from engine.report.analysis.table import Cell, percent

COLUMNS = (
    *("children", "evaluated", "valid", "improved", "rate", "from", "to"),
    *("new bests", "tokens/child", "model s/child"),
)
"""Heads of the cells of `Rate.cells`."""

NOTE = (
    "improved: better than its parent; rate: of the children, with its 95 % Wilson interval, which "
    "takes them for independent."
)

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """What came of a group of children.

    Attributes:
        children: how many.
        evaluated: those of them with a verdict.
        valid: those of them with a score.
        improved: those of them that were better than their parents.
        new_bests: those that were better than all before in their run.
        generated_tokens: of all children.
        llm_seconds: that all children had of the engine.
    """

    children: int
    evaluated: int
    valid: int
    improved: int
    new_bests: int
    generated_tokens: int
    llm_seconds: float

    @property
    def rate(self) -> float | None:
        """Improved children / children; None without any."""
        return self.improved / self.children if self.children else None

    @property
    def interval(self) -> tuple[float, float]:
        """The rate's 95 % interval."""
        return wilson(self.improved, self.children)

    def figures(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return {**asdict(self), "rate": self.rate, "interval_95": list(self.interval)}

    def cells(self) -> tuple[Cell, ...]:
        """Return a table's cells, in the order of `COLUMNS`."""
        low, high = self.interval
        children = max(1, self.children)
        return (
            *(self.children, self.evaluated, self.valid, self.improved),
            *(percent(self.rate), percent(low), percent(high), self.new_bests),
            *(round(self.generated_tokens / children, 1), round(self.llm_seconds / children, 4)),
        )


def rate_of(trials: Sequence[Trial]) -> Rate:
    """Count a group of children."""
    return Rate(
        children=len(trials),
        evaluated=sum(each.is_evaluated for each in trials),
        valid=sum(each.score is not None for each in trials),
        improved=sum(each.is_better for each in trials),
        new_bests=sum(each.is_best for each in trials),
        generated_tokens=sum(each.child.generated_tokens for each in trials),
        llm_seconds=sum(each.child.llm_seconds for each in trials),
    )


def grouped(keyed: Iterable[tuple[Key, Trial]]) -> Mapping[Key, Sequence[Trial]]:
    """Return the trials by key, in the order in which the keys first come."""
    groups: dict[Key, list[Trial]] = {}
    for key, trial in keyed:
        groups.setdefault(key, []).append(trial)
    return groups
