"""Upper bounds on Erdos's minimum overlap constant from step functions.

A step function h on [0, 2] with values in [0, 1] is given by ``steps``, one-dimensional
C-contiguous float64 of length n >= 1: h(x) = steps[i] for x in [i dx, (i + 1) dx), dx = 2/n. With
integral 1, its largest overlap

    C(h) = max over s of  integral of h(x) (1 - h(x + s)) dx,    x and x + s in [0, 2]    (1)

is an upper bound on the constant (Haugland, "The minimum overlap problem revisited", 2016;
AlphaEvolve, "Mathematical exploration and discovery at scale", 2025). Between two multiples of dx
the overlap of step functions is linear in s, so the n-point maximum
max(correlate(steps, 1 - steps)) dx of the public evaluators is the maximum over all s.

Everything here is compiled and in float64; u = 2^-53 is its unit roundoff. `certified_overlap`
accounts for all roundings. Does not cover finding step functions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernels.jit import jit

Steps = NDArray[np.float64]

MAX_STEPS = 1_000_000
"""Above this length the stated error bounds are not derived."""

_UNIT = 2.0**-53


@jit
def overlaps(steps: Steps) -> Steps:
    """Return the overlap for each shift of -(n - 1) .. n - 1 steps; shape (2n - 1,).

    Entry n - 1 + k is dx * sum over i of h[i + k] (1 - h[i]). All terms are at least 0; each goes
    through the roundings of 1 - h, of the product and of at most n additions, and the sum through
    the 2 of its scaling. So for h in [0, 1] the relative error is below 1.01 (n + 4) u
    (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., Lemma 3.1). Products that
    underflow add at most n * 2^-1074 in all.
    """
    n = steps.size
    # Rows of h added to one long row: independent sums, so the inner loop fills vector registers
    # without changing the order of any sum.
    result = np.zeros(2 * n - 1)
    for i in range(n):
        complement = 1.0 - steps[i]
        for a in range(n):
            result[n - 1 - i + a] += complement * steps[a]
    for k in range(result.size):
        result[k] *= 2.0 / n
    return result


@jit
def integral_excess(steps: Steps) -> float:
    """Return the integral of h less 1, for h in [0, 1] and n <= MAX_STEPS; absolute error < 8 u.

    The sum is compensated (Neumaier 1974): its relative error is below u + (1.01 n u)^2 < 1.1 u
    as all terms are at least 0. Scaling by 2/n adds 2 u to a value of at most 2, and the last
    subtraction u times its result.
    """
    total = correction = 0.0
    for value in steps:
        longer = total + value
        if abs(total) >= abs(value):
            correction += (total - longer) + value
        else:
            correction += (value - longer) + total
        total = longer
    return (total + correction) * (2.0 / steps.size) - 1.0


@jit
def certified_overlap(steps: Steps) -> float:
    """Return an upper bound on C(h') for an exact step function h' near ``steps``.

    Let e be the integral of h less 1. For e > 0, h' = h / (1 + e), and for e < 0,
    1 - h' = (1 - h) / (1 - e): then h' is in [0, 1] and its integral is exactly 1. Both lower one
    factor of (1), and raise the other by a function whose integral is abs(e), so

        C(h') <= C(h) + abs(e).                                                           (2)

    To (2) as computed come the bounds of `overlaps` and `integral_excess`, doubled to cover the
    roundings of this sum. So the result exceeds C(h) + abs(e) by less than 3.1 (n + 20) u.

    Raises:
        ValueError: the length is not 1 to MAX_STEPS, or a value lies outside [0, 1] or is NaN.
    """
    n = steps.size
    if not 1 <= n <= MAX_STEPS:
        raise ValueError("Expected 1 to 1,000,000 steps")
    for value in steps:
        if not 0.0 <= value <= 1.0:  # NaN fails both
            raise ValueError("Expected steps in [0, 1]")
    overlap = np.max(overlaps(steps))
    return float(overlap + abs(integral_excess(steps)) + 2.0 * _UNIT * ((n + 4) * overlap + 8.0))
