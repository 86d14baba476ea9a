"""Plain versions of ``kernels.autocorrelation``, which the tests hold the compiled ones against.

Exact: the samples are taken as the rational numbers that they are, so the values are those of the
formulas, rounded once. Slow, for a few hundred samples at most. Not for use in scoring.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from kernels.autocorrelation import Series


def autoconvolution(f: Series) -> list[Fraction]:
    """Return the exact y_k; see `kernels.autocorrelation.autoconvolution`."""
    exact = [Fraction(value) for value in f.tolist()]
    y = [Fraction(0)] * (2 * len(exact) - 1)
    for i, a in enumerate(exact):
        for j, b in enumerate(exact):
            y[i + j] += a * b
    return y


def peak_ratio(f: Series) -> Fraction:
    """Return max abs(f*f) / (integral of f)^2; see `kernels.autocorrelation.peak_ratio`."""
    total = sum(map(Fraction, f.tolist()))
    return 2 * f.size * max(map(abs, autoconvolution(f))) / total**2


def norm_ratio(f: Series) -> Fraction:
    """Return norm2^2 / (norm1 normInf), by integrals; see `kernels.autocorrelation.norm_ratio`."""
    width = Fraction(1, 2 * f.size)
    y = [Fraction(0), *autoconvolution(f), Fraction(0)]
    pieces = list(pairwise(y))
    squared = sum((width / 3 * (a * a + a * b + b * b) for a, b in pieces), Fraction(0))
    norm1 = sum((width / 2 * (a + b) for a, b in pieces), Fraction(0))
    return squared / (norm1 * max(y))
