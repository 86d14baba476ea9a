"""Sign changes of polynomials with integer coefficients, without any rounding, in plain Python.

``native/sign_changes.cpp`` computes the same for ``kernels.uncertainty``, and the tests hold it
against this. A `Polynomial` is the list of its coefficients, lowest power first, the last one not
0; [] is the zero polynomial. `sign_changing_part` and `largest_root` together find where a
polynomial changes its sign for the last time. Does not cover complex roots.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

Polynomial = list[int]

BITS = 80
"""Roots are located to a relative 2^-BITS."""

MAX_EXPONENT = 64
"""Polynomials are refused that may have a root above 2^MAX_EXPONENT: the search would begin with
numbers of that many bits more for each degree, for a root that is of no use to anyone."""

_MERSENNE_EXPONENTS = (61, 521, 1279, 2203, 4423, 9689, 19937)  # 2^e - 1 is prime


def sign_changing_part(polynomial: Polynomial) -> Polynomial:
    """Return the product of the factors of odd multiplicity: the same sign changes, all simple.

    The degree is 1 or more. Yun's square-free factorisation over the rationals (von zur Gathen
    and Gerhard, Modern Computer Algebra, algorithm 14.21).
    """
    common = _gcd(polynomial, _derivative(polynomial))
    if len(common) == 1:
        return polynomial
    result = [1]
    b = _quotient(polynomial, common)
    c = _quotient(_derivative(polynomial), common)
    odd = True
    while len(b) > 1:
        d = _subtract(c, _derivative(b))
        factor = _gcd(b, d) if d else primitive(b)
        if odd:
            result = _multiply(result, factor)
        b, c = _quotient(b, factor), _quotient(d, factor) if d else []
        odd = not odd
    return primitive(result)


def largest_root(polynomial: Polynomial) -> Fraction:
    """Return an upper bound on the largest positive root, at most a relative 2^-BITS above it.

    ``polynomial`` is square-free, with last coefficient above 0 and a positive root. Intervals are
    halved, and the right halves searched first, by Descartes' rule of signs (Collins and Akritas
    1976): the polynomial has no root in an interval without sign variations, and one root in an
    interval with one. An interval that is down to a relative 2^-BITS is not searched further: its
    right end is returned.

    Raises:
        ValueError: there is no positive root, or the bound on it is above 2^MAX_EXPONENT.
    """
    exponent = _root_bound(polynomial)
    if exponent > MAX_EXPONENT:
        raise ValueError(
            f"Expected the last sign change of P to be at x^2 < 2^{MAX_EXPONENT}, but the bound on "
            f"it is 2^{exponent}"
        )
    stack = [(_stretched(polynomial, exponent), 0, 0)]
    while stack:
        local, left, depth = stack.pop()  # roots in (left, left + 1) * 2^(exponent - depth)
        variations = _variations(_shifted(local[::-1]))
        width = Fraction(2) ** (exponent - depth)
        if variations == 0:
            if left > 0 and local[0] == 0:
                return left * width
            continue
        if variations == 1:
            return _bisected(polynomial, left * width, (left + 1) * width)
        if left >> BITS:
            return (left + 1) * width
        halved = _stretched(local, -1)
        stack.append((halved, 2 * left, depth + 1))
        stack.append((_shifted(halved), 2 * left + 1, depth + 1))
    raise ValueError("Expected a polynomial with a positive root, but it has none")


def _bisected(polynomial: Polynomial, low: Fraction, high: Fraction) -> Fraction:
    """Narrow (low, high), which holds the largest root and no other, to a relative 2^-BITS."""
    while (high - low) * 2**BITS > high:
        middle = (low + high) / 2
        value = _scaled_value(polynomial, middle)
        if value == 0:
            return middle
        if value > 0:
            high = middle
        else:
            low = middle
    return high


def _scaled_value(polynomial: Polynomial, at: Fraction) -> int:
    """Return the polynomial's value at ``at`` times a positive number, by Horner's rule."""
    result, scale = 0, 1
    for value in reversed(polynomial):
        result = result * at.numerator + value * scale
        scale *= at.denominator
    return result


def _root_bound(polynomial: Polynomial) -> int:
    """Return b such that p(y) > 0 for all y >= 2^b.

    Each coefficient a_j > 0 is shared out over the d below it. Its share is enough for an a_i < 0,
    a_j y^j / d > abs(a_i) y^i, where y^(j - i) > d abs(a_i) / a_j; each a_i takes the j that is
    best for it. Far complex roots do not matter, unlike to the bounds on all roots.
    """
    d = len(polynomial) - 1
    negative = [i for i, value in enumerate(polynomial) if value < 0]
    if not negative:
        raise ValueError("Expected a polynomial with a positive root, but it has none")
    return max(
        min(
            -(-_log2_bound(-polynomial[i] * d, polynomial[j]) // (j - i))
            for j in range(i + 1, d + 1)
            if polynomial[j] > 0
        )
        for i in negative
    )


def _log2_bound(a: int, b: int) -> int:
    """Return an integer above log2(a / b), for a, b > 0."""
    return a.bit_length() - b.bit_length() + 1


def _stretched(polynomial: Polynomial, exponent: int) -> Polynomial:
    """Return a multiple of p(2^exponent y), by a power of two."""
    if exponent >= 0:
        return [value << (exponent * i) for i, value in enumerate(polynomial)]
    d = len(polynomial) - 1
    return [value << (-exponent * (d - i)) for i, value in enumerate(polynomial)]


def _shifted(polynomial: Polynomial) -> Polynomial:
    """Return p(y + 1)."""
    result = list(polynomial)
    for first in range(len(result) - 1):
        for i in range(len(result) - 2, first - 1, -1):
            result[i] += result[i + 1]
    return result


def _variations(polynomial: Polynomial) -> int:
    """Return the number of sign changes in the coefficients, zeros left out."""
    signs = [value > 0 for value in polynomial if value != 0]
    return sum(a != b for a, b in itertools.pairwise(signs))


def _trimmed(polynomial: Polynomial) -> Polynomial:
    """Return the polynomial without the zeros of its highest powers."""
    end = len(polynomial)
    while end and polynomial[end - 1] == 0:
        end -= 1
    return polynomial[:end]


def primitive(polynomial: Polynomial) -> Polynomial:
    """Return the polynomial over its content, with its last coefficient above 0; [] for zero."""
    trimmed = _trimmed(polynomial)
    if not trimmed:
        return trimmed
    content = math.gcd(*trimmed) if trimmed[-1] > 0 else -math.gcd(*trimmed)
    return [value // content for value in trimmed]


def _derivative(polynomial: Polynomial) -> Polynomial:
    return [i * value for i, value in enumerate(polynomial)][1:]


def _subtract(a: Polynomial, b: Polynomial) -> Polynomial:
    length = max(len(a), len(b))
    a, b = a + [0] * (length - len(a)), b + [0] * (length - len(b))
    return _trimmed([x - y for x, y in zip(a, b, strict=True)])


def _multiply(a: Polynomial, b: Polynomial) -> Polynomial:
    result = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            result[i + j] += x * y
    return result


def _divide(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """Return a / b if that is a polynomial with integer coefficients, else None."""
    rest, result = list(a), [0] * max(0, len(a) - len(b) + 1)
    for i in range(len(result) - 1, -1, -1):
        result[i], remainder = divmod(rest[i + len(b) - 1], b[-1])
        if remainder:
            return None
        for j, value in enumerate(b):
            rest[i + j] -= result[i] * value
    return None if any(rest) else result


def _quotient(a: Polynomial, b: Polynomial) -> Polynomial:
    """Return a / b for a primitive ``b`` that is known to divide ``a``."""
    result = _divide(a, b)
    assert result is not None  # Gauss's lemma
    return result


def _gcd(a: Polynomial, b: Polynomial) -> Polynomial:
    """Return the greatest common divisor, primitive, of two polynomials that are not zero.

    Modulo a large prime (Modern Computer Algebra, algorithm 6.34): no coefficients grow on the
    way. A prime that is too small, or divides by accident, gives a polynomial that does not
    divide both; a common divisor of the largest degree is the greatest. The last primes are
    larger than that algorithm's bound for the polynomials of ``kernels.uncertainty``.
    """
    a, b = primitive(a), primitive(b)
    leading = math.gcd(a[-1], b[-1])
    for exponent in _MERSENNE_EXPONENTS:
        prime = 2**exponent - 1
        if a[-1] % prime == 0 or b[-1] % prime == 0:
            continue
        modular = _modular_gcd(a, b, prime)
        lifted = [leading * value % prime for value in modular]
        common = primitive([v - prime if 2 * v > prime else v for v in lifted])
        if _divide(a, common) is not None and _divide(b, common) is not None:
            return common
    raise ValueError("Expected coefficients of fewer bits: no prime at hand is large enough")


def _modular_gcd(a: Polynomial, b: Polynomial, prime: int) -> Polynomial:
    """Return the greatest common divisor modulo ``prime``, with last coefficient 1."""
    a, b = [v % prime for v in a], [v % prime for v in b]
    while b:
        inverse = pow(b[-1], -1, prime)
        b = [v * inverse % prime for v in b]
        while len(a) >= len(b):
            factor, offset = a[-1], len(a) - len(b)
            for j, value in enumerate(b):
                a[offset + j] = (a[offset + j] - factor * value) % prime
            a = _trimmed(a)
        a, b = b, a
    return a
