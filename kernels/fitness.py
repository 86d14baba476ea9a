"""Metrics of ``protein_fitness``: predicted against measured fitness of the same variants.

Both arrays are one-dimensional, C-contiguous float64 of one length n with finite values; the unit
does not matter, as every metric is the same after a rising linear map of either array.

Pearson's r and Precision@5: PACEvolve++, section 4.1.3, which leaves ties open; the rules for them
are with the functions below. Pearson's r itself is `kernels.signal.correlation`: 0 where either
array is constant. Does not cover the data and how they are split
(``evaluators/protein_fitness``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.jit import jit
from kernels.signal import correlation

Series = NDArray[np.float64]

TOP = 5


class Metrics(NamedTuple):
    """The metrics of one set of predictions."""

    pearson: float
    precision_at_5: float
    spearman: float


@jit
def average_ranks(values: Series) -> Series:
    """Return the rank of each value from 1 up; equal values share the mean of their ranks.

    Exact: every rank is a multiple of 1/2. Shape (n,).
    """
    order = np.argsort(values)
    found = np.empty(values.size, dtype=np.float64)
    start = 0
    while start < values.size:
        end = start + 1
        while end < values.size and values[order[end]] == values[order[start]]:
            end += 1
        for i in range(start, end):
            found[order[i]] = 0.5 * (start + 1 + end)
        start = end
    return found


@jit
def precision_at(predicted: Series, measured: Series, top: int) -> float:
    """Return the share of the ``top`` best predictions that are among the ``top`` best measured.

    With p and m the ``top``-th largest values of the two arrays: variant i is truly at the top
    where measured_i >= m, ties included; it is picked with the weight 1 where predicted_i > p, and
    those with predicted_i = p share the places left in equal parts. The sum of the weights of the
    variants truly at the top, divided by ``top``, is the expected precision when ties of the
    predictions are broken at random, so that the order of the variants tells nothing. A constant
    prediction gets what chance gets. In [0, 1]; the error is below (top + 3) 2^-53.

    Raises:
        ValueError: the lengths differ, or are below ``top``.
    """
    if predicted.size != measured.size or predicted.size < top:
        raise ValueError("Expected predicted and measured of one length that is at least top")
    p = np.sort(predicted)[predicted.size - top]
    m = np.sort(measured)[measured.size - top]
    above, right_above, tied, right_tied = 0, 0, 0, 0
    for i in range(predicted.size):
        right = 1 if measured[i] >= m else 0
        if predicted[i] > p:
            above += 1
            right_above += right
        elif predicted[i] == p:
            tied += 1
            right_tied += right
    return (right_above + right_tied * (top - above) / tied) / top


def measure(predicted: Series, measured: Series) -> Metrics:
    """Return all metrics of the predictions for one protein; n is at least 5.

    Spearman's coefficient is Pearson's r of the average ranks.

    Raises:
        ValueError: the lengths differ, or are below 5.
    """
    # Not compiled: a cached caller would keep an old copy of correlation when its file changes.
    precision = precision_at(predicted, measured, TOP)
    return Metrics(
        correlation(predicted, measured),
        precision,
        correlation(average_ranks(predicted), average_ranks(measured)),
    )
