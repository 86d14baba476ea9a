"""Plain versions of ``kernels.erdos_min_overlap``, which the tests hold those against.

Rational arithmetic on the exact values of the floats: slow, and without any error.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from kernels.erdos_min_overlap import Steps


def overlaps(steps: Steps) -> list[Fraction]:
    """Return the exact overlaps; see `kernels.erdos_min_overlap.overlaps`."""
    return exact_overlaps([Fraction(value) for value in steps.tolist()])


def exact_overlaps(h: Sequence[Fraction]) -> list[Fraction]:
    """Return the overlaps of a step function of any rational values, shift by shift."""
    n = len(h)
    return [
        sum(
            (h[i + k] * (1 - h[i]) for i in range(max(0, -k), min(n, n - k))),
            start=Fraction(0),
        )
        * Fraction(2, n)
        for k in range(1 - n, n)
    ]


def integral_excess(steps: Steps) -> Fraction:
    """Return the exact integral less 1; see `kernels.erdos_min_overlap.integral_excess`."""
    return Fraction(2, steps.size) * sum(map(Fraction, steps.tolist()), Fraction(0)) - 1


def repaired(steps: Steps) -> list[Fraction]:
    """Return the h' with integral 1 of `kernels.erdos_min_overlap.certified_overlap`."""
    h = [Fraction(value) for value in steps.tolist()]
    excess = integral_excess(steps)
    if excess > 0:
        return [value / (1 + excess) for value in h]
    return [1 - (1 - value) / (1 - excess) for value in h]
