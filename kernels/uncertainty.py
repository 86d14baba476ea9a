"""Upper bounds on the constant of the sign uncertainty principle from Hermite polynomials.

For an even f whose Fourier transform has f(0) <= 0 and f^(0) <= 0, let A(f) be the smallest r with
f(x) >= 0 for all abs(x) >= r. C_4 is the largest constant with A(f) A(f^) >= C_4 for all such f
(Goncalves, Oliveira e Silva, Steinerberger, "Hermite polynomials, linear flows on the torus, and
an uncertainty principle for roots", 2017). A combination of the H_4k (physicists' polynomials),

    P(x) = sum over k = 0 .. m of c_k H_4k(x),    c_m such that P(0) = 0,                (1)

gives f(x) = P(sqrt(2 pi) x) exp(-pi x^2), which is its own transform, and so the bound
C_4 <= r_max^2 / (2 pi), with r_max the largest r > 0 at which P changes its sign; P is taken with
the sign that makes it positive for large x (AlphaEvolve, "Mathematical exploration and discovery at
scale", 2025, appendix B.4).

P(x) / x^2 is worked on as a polynomial in y = x^2 with integer coefficients, without the GIL
(``native/sign_changes.cpp``). Nothing is rounded: the floats that define P are rationals, and signs
are those of integers. Does not cover finding coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from kernels import _native

MAX_COEFFICIENTS = 32
"""More are refused: the work and the numbers grow fast with them."""

BITS: int = _native.ROOT_BITS
"""Sign changes are located to a relative 2^-BITS."""


def sign_uncertainty(coefficients: Sequence[float]) -> tuple[Fraction, Fraction]:
    """Return upper bounds on r_max^2 and on r_max^2 / (2 pi), for c_0 .. c_(m-1), m >= 1.

    The bounds exceed the exact values by a relative 2^-BITS and 4e-17 (the float nearest to pi is
    below pi). Where P changes its sign twice, or almost does, within a relative 2^-BITS, the
    larger place counts as a sign change; a root of exactly even multiplicity never does.

    Raises:
        ValueError: there are none or more than MAX_COEFFICIENTS, one is not finite, P is zero, or
            the bound on its last sign change is above 2^64.
    """
    if not 1 <= len(coefficients) <= MAX_COEFFICIENTS:
        raise ValueError(
            f"Expected 1 to {MAX_COEFFICIENTS} coefficients, but there are {len(coefficients)}"
        )
    if not all(math.isfinite(c) for c in coefficients):
        raise ValueError("Expected finite coefficients, but one is not")
    # P has a sign change: f >= 0 would make f^(0), the integral of f, positive; but f^ = f, and
    # f(0) = 0.
    place = _native.hermite_sign_change(list(coefficients))
    if place is None:
        raise ValueError("P is zero: with P(0) = 0 the coefficients cancel")
    square = _fraction(*place)
    return square, square / (2 * Fraction(math.pi))


def last_sign_change(polynomial: Sequence[int]) -> Fraction:
    """Return an upper bound on the largest y > 0 at which the polynomial changes its sign.

    It is at most a relative 2^-BITS above that place, or above one of an almost double root.

    Args:
        polynomial: coefficients, the lowest power first, at least two; the last one is above 0.

    Raises:
        ValueError: the polynomial is none such, there is no such place, or the bound on it is above
            2^64.
    """
    if len(polynomial) < 2 or polynomial[-1] <= 0:
        raise ValueError("Expected a polynomial of degree 1 or more with a last coefficient > 0")
    return _fraction(*_native.last_sign_change(list(polynomial)))


def _fraction(whole: int, exponent: int) -> Fraction:
    if exponent >= 0:
        return Fraction(whole << exponent)
    return Fraction(whole, 1 << -exponent)
