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

P(x) / x^2 is worked on as a polynomial in y = x^2 with integer coefficients, lowest power first.
Nothing is rounded: the floats that define P are rationals, and signs are those of integers. The
search for the last sign change is in ``kernels.uncertainty_roots``. Does not cover finding
coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from kernels.uncertainty_roots import Polynomial, largest_root, primitive, sign_changing_part

MAX_COEFFICIENTS = 32
"""More are refused: the work and the numbers grow fast with them."""


def sign_uncertainty(coefficients: Sequence[float]) -> tuple[Fraction, Fraction]:
    """Return upper bounds on r_max^2 and on r_max^2 / (2 pi), for c_0 .. c_(m-1), m >= 1.

    The bounds exceed the exact values by a relative 2^-80 and 4e-17 (the float nearest to pi is
    below pi). Where P changes its sign twice, or almost does, within a relative 2^-80, the
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
