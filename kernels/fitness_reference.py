"""Plain NumPy versions of ``kernels.fitness``, which the tests hold the compiled ones against.

Same names, arguments and rules; see there for the formulas. Not for use in scoring.
"""

from __future__ import annotations

import numpy as np

from kernels.fitness import TOP, Metrics, Series
from kernels.signal_reference import correlation


def average_ranks(values: Series) -> Series:
    """Return the ranks from 1; see `kernels.fitness.average_ranks`."""
    below = (values[None, :] < values[:, None]).sum(axis=1)
    equal = (values[None, :] == values[:, None]).sum(axis=1)
    return np.asarray(below + 0.5 * (equal + 1))


def precision_at(predicted: Series, measured: Series, top: int) -> float:
    """Return the expected precision; see `kernels.fitness.precision_at`."""
    p, m = np.sort(predicted)[-top], np.sort(measured)[-top]
    above, tied = predicted > p, predicted == p
    weights = above + tied * (top - above.sum()) / tied.sum()
    return float(weights @ (measured >= m) / top)


def measure(predicted: Series, measured: Series) -> Metrics:
    """Return all metrics; see `kernels.fitness.measure`."""
    return Metrics(
        correlation(predicted, measured),
        precision_at(predicted, measured, TOP),
        correlation(average_ranks(predicted), average_ranks(measured)),
    )
