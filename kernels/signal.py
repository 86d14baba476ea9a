"""Metrics of the ``signal`` problems: one filtered signal against its noisy and clean versions.

Every array is one-dimensional, C-contiguous float64 of one common length m >= 1, and already
aligned: ``output[j]`` belongs to ``noisy[j]`` and ``clean[j]`` (see ``evaluators/signal`` for the
delay). `measure` checks the lengths; the functions below it take them as given.

The metrics are those of the evaluator of OpenEvolve's ``signal_processing`` example, whose cost is
J = 0.3 S + 0.2 L_recent + 0.2 L_avg + 0.3 R. Amplitudes have the unit of the signal; S and R are
counts; the rest has no unit. No finite input gives a NaN; an error too large for float64 is
infinite. Does not cover the test signals and the means over them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.jit import jit

Series = NDArray[np.float64]


class Metrics(NamedTuple):
    """The metrics of one signal, in the order in which `measure` computes them."""

    slope_changes: int
    lag_error: float
    tracking_error: float
    false_reversals: int
    composite: float
    correlation: float
    noise_reduction: float


@jit
def reverses(series: Series, i: int) -> bool:
    """Return whether the slope of ``series`` changes its sign at sample ``i``, 0 < i < m - 1.

    sign(x[i+1] - x[i]) != sign(x[i] - x[i-1]) and x[i] != x[i-1]: coming to rest counts, setting
    off from rest does not.
    """
    # Comparisons, for the difference of two finite numbers can overflow.
    rose, fell = series[i] > series[i - 1], series[i] < series[i - 1]
    rises, falls = series[i + 1] > series[i], series[i + 1] < series[i]
    return (rose and not rises) or (fell and not falls)


@jit
def slope_changes(output: Series) -> int:
    """Return S, the number of samples at which the slope of ``output`` `reverses`."""
    count = 0
    for i in range(1, output.size - 1):
        if reverses(output, i):
            count += 1
    return count


@jit
def false_reversals(output: Series, clean: Series) -> int:
    """Return R, the number of samples at which ``output`` reverses and ``clean`` does not."""
    count = 0
    for i in range(1, output.size - 1):
        if reverses(output, i) and not reverses(clean, i):
            count += 1
    return count


@jit
def lag_error(output: Series, noisy: Series) -> float:
    """Return L_recent = abs(y_last - x_last), in the signal's unit."""
    return float(abs(output[-1] - noisy[-1]))


@jit
def tracking_error(output: Series, noisy: Series) -> float:
    """Return L_avg = mean abs(y - x), in the signal's unit."""
    total = 0.0
    for i in range(output.size):
        total += abs(output[i] - noisy[i]) / output.size  # divided first: the sum may overflow
    return total


@jit
def composite(
    slope_changes: float, lag_error: float, tracking_error: float, false_reversals: float
) -> float:
    """Return 1 / (1 + J) in [1/3, 1], with every penalty in J capped at twice its usual size.

    J = 0.3 min(S/50, 2) + 0.2 min(L_recent, 2) + 0.2 min(L_avg, 2) + 0.3 min(R/25, 2)
    """
    penalty = (
        0.3 * min(slope_changes / 50.0, 2.0)
        + 0.2 * min(lag_error, 2.0)
        + 0.2 * min(tracking_error, 2.0)
        + 0.3 * min(false_reversals / 25.0, 2.0)
    )
    return 1.0 / (1.0 + penalty)


@jit
def deviations(values: Series) -> tuple[Series, float]:
    """Return ``(u, scale)`` with ``values - mean = 2 scale u`` and u in [-1, 1].

    A constant array has scale 0 and u all 0; that is the rule by which it is recognised. In
    every other array the sum of u squared is above 0, whatever the size of ``values``.
    """
    # Halved, two finite values can't overflow; shifted by a sample, a small spread round a large
    # mean keeps its digits.
    shifted = 0.5 * values - 0.5 * values[0]
    scale = np.max(np.abs(shifted))
    if scale == 0.0:
        return shifted, 0.0
    shifted /= scale
    shifted -= np.mean(shifted)
    return shifted, scale


@jit
def correlation(output: Series, clean: Series) -> float:
    """Return Pearson's r of ``output`` and ``clean``, in [-1, 1]; 0 where either is constant."""
    u, output_scale = deviations(output)
    v, clean_scale = deviations(clean)
    if output_scale == 0.0 or clean_scale == 0.0:
        return 0.0
    r = np.sum(u * v) / np.sqrt(np.sum(u * u) * np.sum(v * v))
    return float(min(1.0, max(-1.0, r)))


@jit
def noise_reduction(output: Series, noisy: Series, clean: Series) -> float:
    """Return NR = max(0, 1 - var(y - clean) / var(x - clean)), in [0, 1].

    Population variances over the aligned samples, so a constant offset of the output costs
    nothing. 0 where the noise is constant, as there is nothing to reduce.
    """
    left, left_scale = deviations(0.5 * output - 0.5 * clean)
    noise, noise_scale = deviations(0.5 * noisy - 0.5 * clean)
    if noise_scale == 0.0:
        return 0.0
    # The scales are kept out of the variances, where their squares could overflow to inf / inf.
    ratio = left_scale / noise_scale
    return max(0.0, 1.0 - ratio * ratio * (np.sum(left * left) / np.sum(noise * noise)))


@jit
def measure(output: Series, noisy: Series, clean: Series) -> Metrics:
    """Return all metrics of one signal.

    Raises:
        ValueError: the lengths differ or are 0; unchecked, the kernels would read past the end.
    """
    if not (output.size == noisy.size == clean.size and output.size > 0):
        raise ValueError("Expected output, noisy and clean of one length above 0, but they differ")
    s = slope_changes(output)
    l_recent = lag_error(output, noisy)
    l_avg = tracking_error(output, noisy)
    r = false_reversals(output, clean)
    return Metrics(
        s,
        l_recent,
        l_avg,
        r,
        composite(s, l_recent, l_avg, r),
        correlation(output, clean),
        noise_reduction(output, noisy, clean),
    )


@jit
def overall(
    composites: Series, slope_changes: Series, correlations: Series, noise_reductions: Series
) -> float:
    """Return the score of a program in [0, 1] from its metrics, each of shape (signals,).

    0.4 mean(composite) + 0.2 / (1 + mean(S)/20) + 0.2 max(0, mean(r)) + 0.1 mean(NR) + 0.1, and
    0 where mean(r) < 0.1. The last 0.1 is the public formula's share of signals that succeeded,
    which is 1 here: one failed signal fails the program.
    """
    mean_correlation = np.mean(correlations)
    if mean_correlation < 0.1:
        return 0.0
    score = 0.4 * np.mean(composites) + 0.2 / (1.0 + np.mean(slope_changes) / 20.0)
    score += 0.2 * mean_correlation + 0.1 * np.mean(noise_reductions) + 0.1
    return float(score)
