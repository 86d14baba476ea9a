"""Plain versions of ``kernels.uncertainty``, which the tests hold that one against.

`sign_uncertainty` computes the same with Python's integers. `rounded_sign_uncertainty` is NumPy:
roots from the eigenvalues of the companion matrix, sign changes from sampled signs between them;
good to about 1e-6 for a few coefficients whose roots lie apart. Not for use in scoring.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.polynomial import Polynomial as Rounded
from numpy.polynomial import hermite as numpy_hermite

from kernels.uncertainty import MAX_COEFFICIENTS
from kernels.uncertainty_roots_reference import (
    Polynomial,
    largest_root,
    primitive,
    sign_changing_part,
)


def sign_uncertainty(coefficients: Sequence[float]) -> tuple[Fraction, Fraction]:
    """Return the bounds; see `kernels.uncertainty.sign_uncertainty`."""
    if not 1 <= len(coefficients) <= MAX_COEFFICIENTS:
        raise ValueError(
            f"Expected 1 to {MAX_COEFFICIENTS} coefficients, but there are {len(coefficients)}"
        )
    if not all(math.isfinite(c) for c in coefficients):
        raise ValueError("Expected finite coefficients, but one is not")
    polynomial = quotient(coefficients)
    if not polynomial:
        raise ValueError("P is zero: with P(0) = 0 the coefficients cancel")
    # P has a sign change: f >= 0 would make f^(0), the integral of f, positive; but f^ = f, and
    # f(0) = 0.
    square = largest_root(sign_changing_part(polynomial))
    return square, square / (2 * Fraction(math.pi))


def quotient(coefficients: Sequence[float]) -> Polynomial:
    """Return a multiple of P(x) / x^2, positive for large x, in powers of x^2; [] where P = 0.

    The common divisor of the coefficients is 1.
    """
    m = len(coefficients)
    ratios = [value.as_integer_ratio() for value in coefficients]
    unit = max(denominator for _, denominator in ratios)  # all are powers of two
    scaled = [numerator * (unit // denominator) for numerator, denominator in ratios]
    basis = [hermite(4 * k) for k in range(m + 1)]
    # c_m = -(sum of c_k H_4k(0)) / H_4m(0); all times H_4m(0), to stay with integers.
    last = -sum(c * h[0] for c, h in zip(scaled, basis[:-1], strict=True))
    weights = [c * basis[m][0] for c in scaled] + [last]
    total = [0] * (2 * m + 1)
    for weight, h in zip(weights, basis, strict=True):
        for power, value in enumerate(h):
            total[power] += weight * value
    return primitive(total[1:])


def hermite(n: int) -> Polynomial:
    """Return H_n for even n, in powers of y = x^2: n/2 + 1 integers.

    H_n(x) = n! sum over j of (-1)^j (2x)^(n - 2j) / (j! (n - 2j)!)    (DLMF 18.5.13)
    """
    return [
        (-1) ** (n // 2 - i)
        * math.factorial(n)
        * 4**i
        // (math.factorial(n // 2 - i) * math.factorial(2 * i))
        for i in range(n // 2 + 1)
    ]


def rounded_sign_uncertainty(coefficients: Sequence[float]) -> tuple[float, float]:
    """Return r_max^2 and r_max^2 / (2 pi); see `kernels.uncertainty.sign_uncertainty`."""
    p = rounded_polynomial(coefficients)
    roots = p.roots()
    near_real = np.abs(roots.imag) < 1e-6 * np.maximum(1.0, np.abs(roots))
    places = np.sort(roots.real[near_real & (roots.real > 1e-3)])
    between = np.concatenate([[places[0] / 2], (places[1:] + places[:-1]) / 2, [places[-1] * 2]])
    signs = np.sign(p(between))
    r_max = places[signs[1:] != signs[:-1]][-1]
    return float(r_max**2), float(r_max**2 / (2 * np.pi))


def rounded_polynomial(coefficients: Sequence[float]) -> Rounded:
    """Return P, with the last coefficient from P(0) = 0; its sign may be either."""
    m = len(coefficients)
    series = np.zeros(4 * m + 1)
    series[0 : 4 * m : 4] = coefficients
    at_zero = numpy_hermite.hermval(0.0, series)
    series[4 * m] = -at_zero / numpy_hermite.hermval(0.0, [0] * (4 * m) + [1])
    return Rounded(numpy_hermite.herm2poly(series))
