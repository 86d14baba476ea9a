"""Statistics of the analyses: groups, medians, quartiles, and an interval for a rate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from scipy.stats import binomtest

Key = TypeVar("Key", int, str, tuple[Any, ...])
Value = TypeVar("Value")


def grouped(keyed: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the values of each key as they come, the keys in order."""
    groups: dict[Key, list[Value]] = {}
    for key, value in keyed:
        groups.setdefault(key, []).append(value)
    return dict(sorted(groups.items(), key=lambda each: each[0]))


def mean(values: Sequence[float]) -> float | None:
    """Return the mean of ``values``; None of none."""
    return sum(each / len(values) for each in values) if values else None  # the sum may be infinite


def median(values: Sequence[float]) -> float | None:
    """Return the middle one of ``values``, or the mean of the two in the middle; None of none."""
    if not values:
        return None
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return low if low == high else low / 2 + high / 2  # their sum may be infinite


def quartiles(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the smallest values that at least 25 % and 75 % of ``values`` do not exceed."""
    if not values:
        return None
    low, high = np.quantile(values, (0.25, 0.75), method="inverted_cdf").tolist()
    return low, high


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """Return the 95 % score interval of a rate; from 0 to 1 where there were no trials.

    Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", Journal of the
    American Statistical Association 22 (1927), p. 209-212.
    """
    if not trials:
        return 0.0, 1.0
    interval = binomtest(hits, trials).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)
