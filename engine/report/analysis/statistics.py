"""Statistics of the analyses: medians, quartiles, and an interval for a rate."""

from __future__ import annotations

import math
from collections.abc import Sequence

_Z = 1.959963984540054  # the normal distribution's 97.5 % quantile


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
    ordered = sorted(values)
    low, high = (ordered[math.ceil(share * len(ordered)) - 1] for share in (0.25, 0.75))
    return low, high


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """Return the 95 % score interval of a rate; from 0 to 1 where there were no trials.

    Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", Journal of the
    American Statistical Association 22 (1927), p. 209-212: the rates p from which the observed one
    is not more than z standard errors sqrt(p (1 - p) / n) away.
    """
    if not trials:
        return 0.0, 1.0
    rate, square = hits / trials, _Z * _Z / trials
    centre = (rate + square / 2) / (1 + square)
    half = math.sqrt(square * (rate * (1 - rate) + square / 4)) / (1 + square)
    # At the ends the interval touches them, but for rounding.
    low = 0.0 if hits == 0 else centre - half
    return low, 1.0 if hits == trials else centre + half
