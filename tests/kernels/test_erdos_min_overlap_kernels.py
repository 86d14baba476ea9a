"""The overlap kernels against exact arithmetic, hand-worked values and hostile input."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernels import erdos_min_overlap, erdos_min_overlap_reference
from kernels.erdos_min_overlap import Steps, certified_overlap, integral_excess, overlaps

ROUNDOFF = Fraction(1, 2**53)

values = st.floats(0, 1) | st.sampled_from([0.0, 1.0, 0.5, 5e-324, 1 - 2**-53, 2**-53])
functions = st.lists(values, min_size=1, max_size=24).map(lambda v: np.array(v, dtype=np.float64))


@given(functions)
@example(np.zeros(1))
@example(np.ones(7))
@example(np.full(9, 5e-324))
def test_overlaps_agree_with_the_reference_within_their_bound(steps: Steps) -> None:
    exact = erdos_min_overlap_reference.overlaps(steps)
    relative = Fraction(101, 100) * (steps.size + 4) * ROUNDOFF
    underflow = Fraction(steps.size, 2**1074)
    for got, expected in zip(overlaps(steps).tolist(), exact, strict=True):
        assert abs(Fraction(got) - expected) <= relative * expected + underflow


@given(functions)
@example(np.array([1.0, 2**-53, 2**-53, 2**-53]))
def test_the_integral_is_within_its_bound(steps: Steps) -> None:
    exact = erdos_min_overlap_reference.integral_excess(steps)
    assert abs(Fraction(integral_excess(steps)) - exact) < 8 * ROUNDOFF


@given(functions)
@example(np.zeros(3))
@example(np.ones(3))
def test_the_bound_holds_for_the_repaired_function_and_is_tight(steps: Steps) -> None:
    repaired = erdos_min_overlap_reference.repaired(steps)
    assert all(0 <= value <= 1 for value in repaired)
    assert sum(repaired) * 2 == len(repaired)
    certified = Fraction(certified_overlap(steps))
    assert max(erdos_min_overlap_reference.exact_overlaps(repaired)) <= certified
    largest = max(erdos_min_overlap_reference.overlaps(steps))
    deviation = abs(erdos_min_overlap_reference.integral_excess(steps))
    assert certified - largest - deviation < Fraction(31, 10) * (steps.size + 20) * ROUNDOFF


@pytest.mark.parametrize("n", [1000, 4001])
def test_long_functions_agree_with_numpy(n: int) -> None:
    steps = np.random.default_rng(n).random(n)
    expected = np.correlate(steps, 1 - steps, mode="full") * 2 / n
    np.testing.assert_allclose(overlaps(steps), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((0.5,), 0.5),
        ((0.5, 0.5, 0.5, 0.5), 0.5),  # no shift: half of half, over a length of 2
        ((0, 1, 1, 0), 0.5),  # shifted by one step, half of the block meets a gap
        ((1, 0), 1),  # shifted by one step, all of it
        ((0, 0.5, 1, 0.5), 0.625),  # shifts of one step: (0.5 + 0.5 + 0.25) / 2, and less
    ],
)
def test_hand_worked(steps: tuple[float, ...], expected: float) -> None:
    array = np.array(steps, dtype=np.float64)
    assert np.max(overlaps(array)) == expected
    assert certified_overlap(array) == pytest.approx(expected, rel=1e-13)


def test_both_directions_of_shift_are_seen() -> None:
    ramp = np.linspace(0, 1, 11)
    assert certified_overlap(ramp) == pytest.approx(certified_overlap(ramp[::-1].copy()))


def test_a_missing_integral_is_added() -> None:
    # 0.375 * 0.625 * 2 for the constant, and 1/4 for the integral of 3/4.
    assert certified_overlap(np.full(4, 0.375)) == pytest.approx(0.46875 + 0.25, rel=1e-13)
    assert certified_overlap(np.zeros(4)) == pytest.approx(1)
    assert certified_overlap(np.ones(4)) == pytest.approx(1)


@pytest.mark.parametrize("value", [-5e-324, 1 + 2**-52, math.nan, math.inf, -math.inf])
def test_values_outside_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"steps in \[0, 1\]"):
        certified_overlap(np.array([0.5, value, 0.5]))


def test_lengths_are_checked() -> None:
    for length in (0, erdos_min_overlap.MAX_STEPS + 1):
        with pytest.raises(ValueError, match="1 to 1,000,000"):
            certified_overlap(np.zeros(length))
