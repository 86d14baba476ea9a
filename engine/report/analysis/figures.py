"""Figures that an analysis hands back, as tables, and the statistics that it makes them with."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any, TypeVar

import numpy as np
import rich.table
from rich.console import Console
from rich.text import Text
from scipy.stats import binom, binomtest

Key = TypeVar("Key", int, str, tuple[Any, ...])
Value = TypeVar("Value")

_WIDEST = 10**9  # characters of a line: nothing is cut off or wrapped


class Share(float):
    """A part of a whole, which people read in per cent."""

    def __str__(self) -> str:
        return f"{self:.1%}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Figures, as people and JSON read them.

    Attributes:
        title: what they show, in one line.
        rows: the figures by column, the same columns in each; None where there is nothing to tell.
        note: what has to be known to read them; empty if nothing.
        empty: what to say of a table without rows.
    """

    title: str
    rows: Sequence[Mapping[str, Any]]
    note: str = ""
    empty: str = "nothing to show"

    def text(self) -> str:
        """Return the table as lines of aligned columns, words on the left, numbers on the right."""
        if not self.rows:
            return f"{self.title}: {self.empty}\n"
        table = rich.table.Table(box=None, padding=(0, 0, 0, 2))
        for column in self.rows[0]:
            is_text = any(isinstance(row[column], str) for row in self.rows)
            table.add_column(Text(column.replace("_", " ")), justify="left" if is_text else "right")
        for row in self.rows:
            table.add_row(*(Text(_shown(cell)) for cell in row.values()))
        output = StringIO()
        Console(file=output, width=_WIDEST).print(table)
        lines = [line.rstrip() for line in output.getvalue().splitlines()]
        return "\n".join([self.title, *lines, *([self.note] if self.note else [])]) + "\n"


def _shown(cell: Any) -> str:
    if cell is None:
        return "-"
    return f"{cell:.6g}" if type(cell) is float else str(cell)


def grouped(keyed: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the values of each key as they come, the keys in order."""
    groups: dict[Key, list[Value]] = {}
    for key, value in keyed:
        groups.setdefault(key, []).append(value)
    return dict(sorted(groups.items(), key=lambda each: each[0]))


def mean(values: Sequence[float]) -> float | None:
    """Return the mean of ``values``; None of none."""
    return statistics.mean(values) if values else None  # exact: no sum is infinite on the way


def median(values: Sequence[float]) -> float | None:
    """Return the middle one of ``values``, or the mean of the two in the middle; None of none."""
    if not values:
        return None
    return mean([statistics.median_low(values), statistics.median_high(values)])


def spread(values: Sequence[float]) -> dict[str, float | None]:
    """Return the middle and the extremes of ``values``; None where there are none."""
    least, most = min(values, default=None), max(values, default=None)
    return {"median": median(values), "lowest": least, "highest": most}


def quartiles(values: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """Return the median and the quartiles of ``values``; None of none.

    A quartile between two values is as far from each as its place is (Hyndman and Fan, "Sample
    quantiles in statistical packages", 1996, definition 7).
    """
    if not values:
        return None, None, None
    # A quarter of each, which is exact: the difference of two of them is finite.
    quarters = np.quantile(np.asarray(values, dtype=np.float64) / 4, [0.25, 0.5, 0.75])
    low, middle, high = (4 * float(each) for each in quarters)
    return middle, low, high


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """Return the 95 % score interval of a rate of at least one trial.

    Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", Journal of the
    American Statistical Association 22 (1927), p. 209-212.
    """
    interval = binomtest(hits, trials).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def median_interval(values: Sequence[float], *, confidence: float = 0.95) -> dict[str, float]:
    """Return the median with a confidence interval between two of the values, and its confidence.

    The interval from the k-th smallest to the k-th largest of n values holds the median of their
    distribution, whatever that is, with probability 1 - 2 P(Bin(n, 1/2) < k), or more if values can
    be equal (David and Nagaraja, Order Statistics, section 7.1). It is the narrowest that has
    ``confidence``; with fewer than 6 values none has 0.95, and it is all of their range.
    """
    ordered, n = sorted(values), len(values)
    outside = [2 * float(binom.cdf(k - 1, n, 0.5)) for k in range(1, (n + 1) // 2 + 1)]
    k = max((k for k, share in enumerate(outside, start=1) if share <= 1 - confidence), default=1)
    return {
        "median": statistics.median(ordered),
        "low": ordered[k - 1],
        "high": ordered[n - k],
        "confidence": max(0.0, 1 - outside[k - 1]),
    }
