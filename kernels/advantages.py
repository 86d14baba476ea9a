"""Advantages: by how much each child of a group counts, from the rewards of all.

Every function takes a group's values as a float64 vector of at least one finite number and returns
a new vector of its length. Nothing overflows as long as two values differ by less than the largest
float: sums are of shares, and what is squared or raised was divided by the largest before.

Sources: PACEvolve++ (sections 2.2 and 3.3); Walder and Karkhanis, "Pass@k Policy Optimization"
(PKPO, 2025). Does not cover which of them a run uses and when a group is skipped
(``engine.learning.advantages``).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from kernels.jit import jit

Vector = NDArray[np.float64]


@jit
def deviations(values: Vector) -> Vector:
    """Return each value's difference from the mean; exactly 0 where all are equal."""
    first, mean = values[0], 0.0
    for value in values:
        mean += (value - first) / values.size
    result = np.empty_like(values)
    for i in range(values.size):
        result[i] = (values[i] - first) - mean
    return result


@jit
def spread(values: Vector) -> float:
    """Return the population standard deviation."""
    differences = deviations(values)
    largest = np.abs(differences).max()
    if largest == 0.0:
        return 0.0
    square = 0.0
    for difference in differences:
        square += (difference / largest) ** 2 / values.size
    return float(largest * math.sqrt(square))


@jit
def standardised(values: Vector, eps: float) -> Vector:
    """Return Phi of PACEvolve++, theorem 1: (value - mean) / (standard deviation + eps)."""
    return deviations(values) / (spread(values) + eps)


@jit
def best_of_k(rewards: Vector, k: int) -> Vector:
    """Return SLOO_{k-1} (PACEvolve++, Eq. 3; PKPO), for 2 <= k <= N.

    That is the mean over all k of the N children, with child i among them, of by how much i raises
    the best reward of the k, times k / N. Of g in rising order, it takes one step from each to the
    next: the (m + 1)-th wins by g_(m+1) - g_(m) more than the m-th against each k - 1 of the first
    m children,

        w_(m+1) = w_(m) + C(m, k-1) / C(N, k) (g_(m+1) - g_(m)),    w_(1) = 0.

    All terms are at least 0, so nothing cancels; equal rewards have equal weights, and the k - 1
    lowest exactly 0.
    """
    order = np.argsort(rewards)
    count = rewards.size
    result = np.zeros_like(rewards)
    share = k / count  # C(m, k-1) / C(N, k), for m = N - 1 and then downwards
    for m in range(count - 1, 0, -1):
        result[order[m]] = share * (rewards[order[m]] - rewards[order[m - 1]])
        share *= (m - k + 1) / m
    for m in range(1, count):
        result[order[m]] += result[order[m - 1]]
    return result


@jit
def inverse_temperature(rewards: Vector, gamma: float) -> float:
    """Return beta with KL(q_beta || uniform) = gamma, q_beta(i) ~ exp(beta R_i).

    In units of 1 / (largest - smallest reward). The divergence rises with beta from 0 towards
    ln(N / M), where M children share the largest reward. Infinity if gamma is not below that.
    """
    x = _from_best(rewards)
    ties = (x == 0.0).sum()
    if gamma >= math.log(rewards.size / ties):
        return math.inf
    low, high = 0.0, 1.0
    while _divergence(x, high) < gamma:
        low, high = high, high * 2.0
        if high > 1e300:  # gamma is within rounding of its limit
            return math.inf
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if _divergence(x, middle) < gamma:
            low = middle
        else:
            high = middle
    return high


@jit
def entropic(rewards: Vector, beta: float, eps: float) -> Vector:
    """Return the leave-one-out entropic advantages (PACEvolve++, section 2.2).

    A_i = e_i / (Z_-i + eps) - 1, with e_i = exp(beta (R_i - R_max)) and Z_-i the mean of e over
    the others. Where beta is infinite, e is 1 for the M children with the largest reward and 0 for
    the others, so that each of the M has (N - 1) / (M - 1) - 1 and each other -1. For M = 1 the
    formula grows without bound; a lone best child then has N - 1, its weight by the mean over all
    children instead of over the others.

    Args:
        rewards: two or more.
        beta: see `inverse_temperature`.
        eps: keeps the quotient finite.
    """
    x = _from_best(rewards)
    others = x.size - 1
    ties = (x == 0.0).sum()
    result = np.empty_like(rewards)
    if math.isinf(beta):
        of_best = others / (ties - 1) - 1.0 if ties > 1 else float(others)
        for i in range(x.size):
            result[i] = of_best if x[i] == 0.0 else -1.0
        return result
    rest = 0.0  # the best are added apart: beside them, what is left over would be lost
    for value in x:
        if value < 0.0:
            rest += math.exp(beta * value)
    for i in range(x.size):
        e = math.exp(beta * x[i])
        z = (rest + (ties - 1) if x[i] == 0.0 else rest - e + ties) / others
        result[i] = e / (z + eps) - 1.0
    return result


@jit
def _from_best(rewards: Vector) -> Vector:
    """Return (R - R_max) / (R_max - R_min), from -1 to 0; zeros where all are equal."""
    best, worst = rewards.max(), rewards.min()
    if best == worst:
        return np.zeros_like(rewards)
    x: Vector = (rewards - best) / (best - worst)
    return x


@jit
def _divergence(x: Vector, beta: float) -> float:
    """Return KL(q || uniform) in nats for q_i ~ exp(beta x_i), the largest x being 0."""
    z, mean = 0.0, 0.0
    for value in x:
        e = math.exp(beta * value)
        z += e
        mean += e * value
    return math.log(x.size / z) + beta * mean / z
