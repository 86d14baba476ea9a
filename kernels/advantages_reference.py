"""Plain versions of ``kernels.advantages``, which the tests hold those against.

Written as the sources write them: sums over all subsets, and scipy's root finder. For small groups
and rewards of ordinary size.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
from scipy.optimize import brentq

from kernels.advantages import Vector


def deviations(values: Vector) -> Vector:
    """See `kernels.advantages.deviations`."""
    result: Vector = values - values.mean()
    return result


def spread(values: Vector) -> float:
    """See `kernels.advantages.spread`."""
    return float(values.std())


def standardised(values: Vector, eps: float) -> Vector:
    """See `kernels.advantages.standardised`."""
    return deviations(values) / (spread(values) + eps)


def subset_best(rewards: Vector, k: int) -> Vector:
    """Return PKPO's weights without a baseline (PACEvolve++, Eq. 2), from all subsets of size k.

    The gradient that they estimate is also that of `best_of_k`, whose variance is lower.
    """
    result = np.zeros_like(rewards)
    for subset in combinations(range(rewards.size), k):
        for i in subset:
            result[i] += max(rewards[j] for j in subset)
    return result / comb(rewards.size, k)


def best_of_k(rewards: Vector, k: int) -> Vector:
    """See `kernels.advantages.best_of_k`; Eq. 3 of PACEvolve++ over all subsets of size k."""
    result = np.zeros_like(rewards)
    for subset in combinations(range(rewards.size), k):
        for i in subset:
            best_without = max(rewards[j] for j in subset if j != i)
            result[i] += max(rewards[j] for j in subset) - best_without
    return result / comb(rewards.size, k)


def divergence(rewards: Vector, beta: float) -> float:
    """Return KL(q || uniform) in nats; ``beta`` is in units of 1 / (largest - smallest reward)."""
    exponents = beta * (rewards - rewards.max()) / np.ptp(rewards)
    q = np.exp(exponents) / np.exp(exponents).sum()
    kept = q > 0
    return float(np.sum(q[kept] * np.log(q[kept] * rewards.size)))


def inverse_temperature(rewards: Vector, gamma: float) -> float:
    """See `kernels.advantages.inverse_temperature`."""
    ties = np.count_nonzero(rewards == rewards.max())
    if gamma >= np.log(rewards.size / ties):
        return float("inf")
    high = 1.0
    while divergence(rewards, high) < gamma:
        high *= 2
    found = brentq(lambda beta: divergence(rewards, beta) - gamma, 0.0, high, xtol=1e-13)
    return float(found)


def entropic(rewards: Vector, beta: float, eps: float) -> Vector:
    """See `kernels.advantages.entropic`, for a finite beta."""
    e = np.exp(beta * (rewards - rewards.max()) / np.ptp(rewards))
    others = np.array([np.delete(e, i).mean() for i in range(e.size)])
    result: Vector = e / (others + eps) - 1
    return result
