"""Statistics of the benchmarks: small, and without interpolation."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least ``percent`` % of ``values`` do not exceed.

    With fewer than 100 values the 99th percentile is the largest one.
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def spread(values: Sequence[float], *, digits: int = 3) -> dict[str, float]:
    """Return the median of a figure's rounds, and the lowest and the highest of them."""
    return {
        "median": round(statistics.median(values), digits),
        "low": round(min(values), digits),
        "high": round(max(values), digits),
    }


def milliseconds(seconds: Sequence[float]) -> dict[str, Any]:
    """Return median, mean, 95th and 99th percentile of ``seconds`` in ms, and how many they are."""
    return {
        "median": round(1e3 * statistics.median(seconds), 3),
        "mean": round(1e3 * statistics.fmean(seconds), 3),
        "p95": round(1e3 * percentile(seconds, 95), 3),
        "p99": round(1e3 * percentile(seconds, 99), 3),
        "n": len(seconds),
    }


def paired(differences: Sequence[float]) -> dict[str, Any]:
    """Return the mean of paired differences, its 95 % t interval and Wilcoxon's test.

    The test's p-value is exact for up to 50 pairs, or up to 13 where differences are 0 or tied, and
    asymptotic for more.
    """
    values = np.array(differences)
    mean, error = float(values.mean()), float(stats.sem(values))
    half = error * float(stats.t.ppf(0.975, len(values) - 1))
    test = stats.wilcoxon(values) if np.any(values) else None
    return {
        "mean": mean,
        "interval_95": [mean - half, mean + half],
        "wins": int((values > 0).sum()),
        "losses": int((values < 0).sum()),
        "wilcoxon_p": None if test is None else float(test.pvalue),
    }


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return p-values corrected for their number after Holm (1979).

    The i-th smallest of m is multiplied by m - i + 1; none is below a smaller one's, or above 1.
    """
    corrected: dict[str, float] = {}
    largest = 0.0
    for index, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, p * (len(p_values) - index)))
        corrected[name] = largest
    return corrected
