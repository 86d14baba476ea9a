"""Rounding rationals to the float64 on one side of them."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.rounding import round_down, round_up

LARGEST = math.nextafter(math.inf, 0.0)


@given(st.fractions() | st.floats(allow_nan=False, allow_infinity=False).map(Fraction))
def test_the_value_lies_between_its_neighbours(value: Fraction) -> None:
    down, up = round_down(value), round_up(value)
    assert Fraction(down) <= value <= Fraction(up)
    assert up in (down, math.nextafter(down, math.inf))
    assert (up == down) == (Fraction(float(value)) == value)


@pytest.mark.parametrize(
    ("value", "down", "up"),
    [
        (Fraction(0), 0.0, 0.0),
        (Fraction(1, 2**1080), 0.0, 5e-324),
        (Fraction(-1, 2**1080), -5e-324, 0.0),
        (Fraction(10**400), LARGEST, math.inf),
        (Fraction(-(10**400)), -math.inf, -LARGEST),
    ],
)
def test_the_ends_of_the_range(value: Fraction, down: float, up: float) -> None:
    assert (round_down(value), round_up(value)) == (down, up)
    assert math.copysign(1, round_up(Fraction(0))) == 1
