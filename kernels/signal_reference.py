"""Plain NumPy versions of ``kernels.signal``, which the tests hold the compiled ones against.

Same names, arguments, shapes and rules for degenerate input; see there for the formulas. Written
for reading: whole arrays, the textbook definitions, and long doubles where float64 could overflow
or cancel. Not for use in scoring.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernels.signal import Metrics, Series


def _reversals(series: Series) -> NDArray[np.bool_]:
    """Return for each inner sample whether the slope changes its sign there; shape (m - 2,)."""
    slope = np.sign(np.diff(series.astype(np.longdouble)))
    return np.asarray((slope[1:] != slope[:-1]) & (slope[:-1] != 0), dtype=np.bool_)


def slope_changes(output: Series) -> int:
    """Return S; see `kernels.signal.slope_changes`."""
    return int(np.sum(_reversals(output)))


def false_reversals(output: Series, clean: Series) -> int:
    """Return R; see `kernels.signal.false_reversals`."""
    return int(np.sum(_reversals(output) & ~_reversals(clean)))


def lag_error(output: Series, noisy: Series) -> float:
    """Return L_recent; see `kernels.signal.lag_error`."""
    return float(np.abs(output - noisy)[-1])


def tracking_error(output: Series, noisy: Series) -> float:
    """Return L_avg; see `kernels.signal.tracking_error`."""
    return float(np.mean(np.abs(output - noisy)))


def composite(
    slope_changes: float, lag_error: float, tracking_error: float, false_reversals: float
) -> float:
    """Return 1 / (1 + J); see `kernels.signal.composite`."""
    usual = np.array([50.0, 1.0, 1.0, 25.0])
    penalties = np.array([slope_changes, lag_error, tracking_error, false_reversals]) / usual
    return float(1.0 / (1.0 + np.array([0.3, 0.2, 0.2, 0.3]) @ np.minimum(penalties, 2.0)))


def correlation(output: Series, clean: Series) -> float:
    """Return Pearson's r; see `kernels.signal.correlation`."""
    if output.min() == output.max() or clean.min() == clean.max():
        return 0.0
    u = output.astype(np.longdouble) - output.mean(dtype=np.longdouble)
    v = clean.astype(np.longdouble) - clean.mean(dtype=np.longdouble)
    return float(np.sum(u * v) / (np.sqrt(np.sum(u**2)) * np.sqrt(np.sum(v**2))))


def noise_reduction(output: Series, noisy: Series, clean: Series) -> float:
    """Return NR; see `kernels.signal.noise_reduction`."""
    left = (output - clean).astype(np.longdouble)
    noise = (noisy - clean).astype(np.longdouble)
    if noise.min() == noise.max():
        return 0.0
    return float(max(np.longdouble(0), 1 - np.var(left) / np.var(noise)))


def measure(output: Series, noisy: Series, clean: Series) -> Metrics:
    """Return all metrics of one signal; see `kernels.signal.measure`."""
    s, r = slope_changes(output), false_reversals(output, clean)
    l_recent, l_avg = lag_error(output, noisy), tracking_error(output, noisy)
    return Metrics(
        slope_changes=s,
        lag_error=l_recent,
        tracking_error=l_avg,
        false_reversals=r,
        composite=composite(s, l_recent, l_avg, r),
        correlation=correlation(output, clean),
        noise_reduction=noise_reduction(output, noisy, clean),
    )


def overall(
    composites: Series, slope_changes: Series, correlations: Series, noise_reductions: Series
) -> float:
    """Return the score of a program; see `kernels.signal.overall`."""
    if correlations.mean() < 0.1:
        return 0.0
    smoothness = 1.0 / (1.0 + slope_changes.mean() / 20.0)
    terms = [composites.mean(), smoothness, max(0.0, correlations.mean()), noise_reductions.mean()]
    success_rate = 1.0
    return float(np.dot([0.4, 0.2, 0.2, 0.1, 0.1], [*terms, success_rate]))
