"""Sign changes of Hermite combinations: hand-worked, against NumPy's roots, and hostile input."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.polynomial import hermite as numpy_hermite
from numpy.polynomial import polynomial as numpy_polynomial

from kernels import uncertainty_reference
from kernels.uncertainty import BITS, MAX_COEFFICIENTS, last_sign_change, sign_uncertainty
from kernels.uncertainty_reference import hermite, quotient
from kernels.uncertainty_roots_reference import Polynomial, largest_root, sign_changing_part


def product(roots: list[tuple[int, int]], *factors: Polynomial) -> Polynomial:
    """Return the product of (y - root)^multiplicity and of ``factors``, lowest power first."""
    result = np.array([1], dtype=object)
    for root, multiplicity in roots:
        for _ in range(multiplicity):
            result = numpy_polynomial.polymul(result, np.array([-root, 1], dtype=object))
    for factor in factors:
        result = numpy_polynomial.polymul(result, np.array(factor, dtype=object))
    return [int(value) for value in result]


def agreed(polynomial: Polynomial) -> Fraction:
    """Return the last sign change, for which the reference has the same number."""
    found = last_sign_change(polynomial)
    assert found == largest_root(sign_changing_part(polynomial))
    return found


@pytest.mark.parametrize("n", [0, 4, 8, 12, 24])
def test_hermite_polynomials_agree_with_numpy(n: int) -> None:
    expected = numpy_hermite.herm2poly([0] * n + [1])[::2]
    np.testing.assert_allclose(np.array(hermite(n), dtype=np.float64), expected, rtol=1e-12)


def test_small_hermite_polynomials() -> None:
    assert hermite(0) == [1]
    assert hermite(4) == [12, -48, 16]
    assert hermite(8) == [1680, -13440, 13440, -3584, 256]


def test_one_coefficient_by_hand() -> None:
    # P = H_4 - 12 H_0 = 16 x^4 - 48 x^2: the sign changes at x^2 = 3.
    for coefficient in (1.0, -1.0, 1e308, 5e-324):
        assert quotient([coefficient]) == [-3, 1]
        square, bound = sign_uncertainty([coefficient])
        assert 3 <= square < 3 * (1 + Fraction(1, 2**BITS))
        assert float(bound) == pytest.approx(3 / (2 * math.pi), rel=1e-15)


def test_published_coefficients() -> None:
    # LoongFlow's published combination, and 4 digits of AlphaEvolve's.
    _, loongflow = sign_uncertainty([96.65316337499632, -3.4008547231204944, -0.026189743258153708])
    assert float(loongflow) == pytest.approx(0.352099, abs=5e-7)
    _, alphaevolve = sign_uncertainty([0.32925, -0.01159, -8.9216e-05])
    assert float(alphaevolve) == pytest.approx(0.3521, abs=1e-4)


def test_the_bound_is_above_the_exact_value() -> None:
    # pi to 30 digits; square is above 3 by a relative 2^-80 at most.
    square, bound = sign_uncertainty([1.0])
    pi = Fraction(3141592653589793238462643383279, 10**30)
    assert 0 < bound / (square / (2 * pi)) - 1 < Fraction(4, 10**17)


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=4))
def test_agrees_with_the_reference(weights: list[int]) -> None:
    coefficients = [weight / hermite(4 * k)[0] for k, weight in enumerate(weights)]
    assume(sum(weights) != 0)
    roots = uncertainty_reference.rounded_polynomial(coefficients).roots()
    far = [abs(a - b) for a, b in itertools.combinations(roots[np.abs(roots) > 1e-3], 2)]
    assume(min(far) > 1e-2)  # the reference can't tell two near roots from a double one
    square, bound = sign_uncertainty(coefficients)
    expected = uncertainty_reference.rounded_sign_uncertainty(coefficients)
    assert (float(square), float(bound)) == pytest.approx(expected, rel=1e-5)


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6),
    st.integers(-40, 40),
)
def test_scaling_changes_nothing(coefficients: list[float], exponent: int) -> None:
    scaled = [math.ldexp(value, exponent) for value in coefficients if abs(value) < 1e290]
    assume(scaled and all(v == 0 or abs(v) > 1e-290 for v in scaled))
    assume(any(math.ldexp(v, 0) != 0 for v in scaled))
    original = [math.ldexp(value, -exponent) for value in scaled]
    assert quotient(scaled) == quotient(original) == quotient([-value for value in original])


@pytest.mark.parametrize(
    ("polynomial", "expected"),
    [
        (product([(2, 1)]), 2),
        (product([(2, 1), (5, 2)]), 2),  # a double root is no sign change
        (product([(2, 1), (5, 3)]), 5),  # a triple one is
        (product([(2, 3), (5, 2), (7, 4)]), 2),
        (product([(1, 1), (2, 5), (3, 6)]), 2),
        (product([(3, 1)], [2, 0, 1]), 3),  # complex roots
        (product([(3, 1)], [2, 0, 1], [2, 0, 1]), 3),  # double complex roots
        (product([(3, 1), (-9, 1)]), 3),  # negative roots
        (product([(8, 1), (16, 1)]), 16),  # at the ends of the halved intervals
        (product([(4, 1), (8, 2)]), 4),
        (product([(10**15, 1), (1, 1)]), 10**15),
        (product([(3, 1)], [10**200, 0, 1]), 3),  # far complex roots
    ],
)
def test_the_last_sign_change(polynomial: Polynomial, expected: int) -> None:
    square = agreed(polynomial)
    assert expected <= square <= expected * (1 + Fraction(1, 2**BITS))


def test_two_roots_a_hair_apart_are_told_from_none() -> None:
    # (y - 2)^2 - 10^-30 changes its sign at 2 + 10^-15, and (y - 2)^2 + 10^-30 never.
    squared = [4, -4, 1]
    near = [value * 10**30 for value in squared]
    split = product([(1, 1)], [near[0] - 1, *near[1:]])
    assert 2 < agreed(split) < 2 + Fraction(2, 10**15)
    apart = product([(1, 1)], [near[0] + 1, *near[1:]])
    assert agreed(apart) == 1


def test_what_is_nearer_than_the_resolution_counts_as_a_sign_change() -> None:
    near = [100 * 2**400 + 1, -60 * 2**400, 9 * 2**400]  # (3 y - 10)^2 and a little: complex
    root = Fraction(10, 3)
    assert 0 <= agreed(product([(1, 1)], near)) - root < Fraction(1, 2 ** (BITS - 3))


def test_a_polynomial_without_positive_root_is_refused() -> None:
    for polynomial in ([1, 1], [2, 0, 1], product([], [3, -2, 1])):
        for find in (last_sign_change, largest_root):
            with pytest.raises(ValueError, match="has none"):
                find(polynomial)


@pytest.mark.parametrize("polynomial", [[], [0], [5], [1, -1], [-1, 0], [0, 0, -3]])
def test_what_is_no_polynomial_with_a_last_coefficient_above_0_is_refused(
    polynomial: Polynomial,
) -> None:
    with pytest.raises(ValueError, match="last coefficient > 0"):
        last_sign_change(polynomial)


@pytest.mark.parametrize(
    ("coefficients", "message"),
    [
        ([], "1 to 32 coefficients, but there are 0"),
        ([1.0] * (MAX_COEFFICIENTS + 1), "1 to 32 coefficients, but there are 33"),
        ([0.0], "P is zero"),
        ([0.0, -0.0, 0.0], "P is zero"),
        ([1.0, math.nan], "finite"),
        ([math.inf], "finite"),
    ],
)
def test_what_gives_no_polynomial_is_refused(coefficients: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sign_uncertainty(coefficients)


def test_a_last_coefficient_of_zero_leaves_a_shorter_polynomial() -> None:
    # 12 H_0 - H_4 is 0 at 0 by itself, so the coefficient of H_8 is 0.
    assert quotient([12.0, -1.0]) == quotient([1.0]) == [-3, 1]


def far_complex_roots(exponent: int) -> list[float]:
    """Return 32 finite coefficients whose P has four complex roots x^2 of size 2^exponent.

    For large x, P is d H_128 + c_31 H_124 + c_30 H_120, in proportions as of z^2 - 1.6 z + 1 with
    z = x^4 / 2^(2 exponent); the other coefficients, each a float's rest of those above it, bring
    d = -(sum of c_k H_4k(0)) / H_128(0) near what these proportions ask for.
    """
    size = Fraction(2) ** (2 * exponent)
    at_zero = [abs(hermite(4 * k)[0]) for k in range(33)]
    d = 1 / (size**2 * 2**128)
    coefficients = [0.0] * 32
    coefficients[31] = float(Fraction(-8, 5) / (size * 2**124))
    coefficients[30] = 2.0**-120
    rest = -d * at_zero[32] - sum(Fraction(coefficients[k]) * at_zero[k] for k in (30, 31))
    for k in range(29, -1, -1):
        coefficients[k] = float(rest / at_zero[k])
        rest -= Fraction(coefficients[k]) * at_zero[k]
    return coefficients


def test_what_may_change_its_sign_far_out_is_refused_before_the_work() -> None:
    with pytest.raises(ValueError, match=r"x\^2 < 2\^64, but the bound on it is 2\^2[23]\d"):
        sign_uncertainty(far_complex_roots(226))
    square, _ = sign_uncertainty(far_complex_roots(50))
    assert 1 < square < 1000


def test_the_longest_and_wildest_coefficients_are_done_soon() -> None:
    rng = np.random.default_rng(0)
    wild = rng.normal(size=MAX_COEFFICIENTS) * 10.0 ** rng.integers(-300, 300, MAX_COEFFICIENTS)
    square, _ = sign_uncertainty(wild.tolist())
    polynomial = quotient(wild.tolist())
    assert sum(value * square**i for i, value in enumerate(polynomial)) >= 0
    below = square * (1 - Fraction(1, 2 ** (BITS - 1)))
    assert sum(value * below**i for i, value in enumerate(polynomial)) < 0


def outcome(
    compute: Callable[[list[float]], tuple[Fraction, Fraction]], coefficients: list[float]
) -> tuple[Fraction, Fraction] | str:
    """Return the bounds or what was wrong."""
    try:
        return compute(coefficients)
    except ValueError as error:
        return str(error)


def hostile_coefficients(rng: np.random.Generator) -> list[float]:
    """Return 1 to 6 coefficients: useful, wild or cancelling ones, zeros, and no numbers."""
    count = int(rng.integers(1, 7))
    kind = rng.integers(6)
    if kind == 0:
        given = rng.normal(size=count) * 10.0 ** rng.integers(-330, 308, count)
    elif kind == 1:
        given = rng.integers(-3, 4, count) * 1.0  # zeros, and double roots by accident
    elif kind == 2:
        given = rng.choice([0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, 1.0], count)
    else:
        given = rng.normal(size=count) / [abs(hermite(4 * k)[0]) for k in range(count)]
    if kind == 3:
        given[rng.integers(count)] = rng.choice([math.nan, math.inf, -math.inf, 0.0])
    return [float(value) for value in given]


@pytest.mark.parametrize("times", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_hostile_coefficients_give_the_references_numbers(times: int) -> None:
    rng = np.random.default_rng(times)
    for _ in range(times):
        coefficients = hostile_coefficients(rng)
        expected = outcome(uncertainty_reference.sign_uncertainty, coefficients)
        assert outcome(sign_uncertainty, coefficients) == expected, coefficients


@pytest.mark.slow
def test_long_combinations_give_the_references_numbers() -> None:
    rng = np.random.default_rng(2)
    for count in range(7, MAX_COEFFICIENTS + 1):
        wild = rng.normal(size=count) * 10.0 ** rng.integers(-300, 300, count)
        useful = rng.normal(size=count) / [float(abs(hermite(4 * k)[0])) for k in range(count)]
        for coefficients in (wild.tolist(), useful.tolist()):
            expected = outcome(uncertainty_reference.sign_uncertainty, coefficients)
            assert outcome(sign_uncertainty, coefficients) == expected, coefficients


factors = st.lists(
    st.tuples(st.lists(st.integers(-(2**70), 2**70), min_size=2, max_size=4), st.integers(1, 4)),
    min_size=1,
    max_size=4,
)


@given(factors)
@settings(max_examples=100, deadline=None)
def test_repeated_factors_give_the_references_sign_change(
    factors: list[tuple[list[int], int]],
) -> None:
    polynomial = product([], *(factor for factor, times in factors for _ in range(times)))
    while polynomial and polynomial[-1] == 0:
        polynomial.pop()
    assume(len(polynomial) > 1)
    polynomial = [value if polynomial[-1] > 0 else -value for value in polynomial]

    def reference(given: Polynomial) -> Fraction:
        return largest_root(sign_changing_part(given))

    answers: list[Fraction | str] = []
    for find in (last_sign_change, reference):
        try:
            answers.append(find(polynomial))
        except ValueError as error:
            answers.append(str(error))
    assert answers[0] == answers[1]
