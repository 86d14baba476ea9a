"""Exact packings against hand-worked values, rational arithmetic and hostile input."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kernels import circle_packing, circle_packing_reference
from kernels.circle_packing import GRID_BITS, Floats, Packing, exact_packing


def packing(*circles: tuple[float, float, float]) -> tuple[Floats, Floats]:
    array = np.array(circles, dtype=np.float64)
    return np.ascontiguousarray(array[:, :2]), np.ascontiguousarray(array[:, 2])


def shrunk(centers: Floats, radii: Floats, shrink: Fraction) -> bool:
    """Return whether the packing is valid, by the reference, with its radii reduced."""
    return circle_packing_reference.valid(
        [[Fraction(value) for value in center] for center in centers.tolist()],
        [max(Fraction(0), Fraction(radius) - shrink) for radius in radii.tolist()],
    )


unit = st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0, 5e-324, 1 - 2**-53])
any_radius = st.floats(0, 0.6) | st.sampled_from([0.0, 5e-324, 1.0, 1e308])
circles = st.lists(st.tuples(unit, unit, any_radius), min_size=1, max_size=6)


@given(circles)
@example([(0.5, 0.5, 0.25), (0.5, 0.5, 0.25)])  # one on top of the other
@example([(0.5, 0.5, 0.5), (0.75, 0.5, 0.0)])  # a point inside a circle
@example([(0.5, 0.5, 1.7e308), (0.25, 0.5, 1.7e308)])
def test_the_shrink_is_the_smallest_that_makes_the_packing_valid(
    circles: list[tuple[float, float, float]],
) -> None:
    centers, radii = packing(*circles)
    exact = exact_packing(centers, radii)
    assert shrunk(centers, radii, exact.shrink)
    step = Fraction(1, 2**GRID_BITS)
    assert exact.shrink == 0 or not shrunk(centers, radii, exact.shrink - step)
    kept = [max(Fraction(0), Fraction(radius) - exact.shrink) for radius in radii.tolist()]
    assert exact.radii_sum == sum(kept)


@given(st.lists(st.tuples(unit, unit, st.floats(0, 0.6)), min_size=1, max_size=8))
def test_excess_agrees_with_the_reference(circles: list[tuple[float, float, float]]) -> None:
    centers, radii = packing(*circles)
    expected = circle_packing_reference.excess(centers, radii)
    assert_allclose(circle_packing.excess(centers, radii), expected, rtol=0, atol=2e-15)


@given(circles)
def test_excess_above_its_error_is_a_shrink(circles: list[tuple[float, float, float]]) -> None:
    centers, radii = packing(*circles)
    if radii.max() > 1:
        return  # the error bound is for radii of at most 1
    wall, overlap = circle_packing.excess(centers, radii)
    shrink = exact_packing(centers, radii).shrink
    assert float(shrink) >= max(wall, overlap / 2) - 1e-15
    if max(wall, overlap) < -1e-15:
        assert shrink == 0


@pytest.mark.parametrize(
    ("circles", "shrink", "radii_sum"),
    [
        ([(0.5, 0.5, 0.5)], 0, 0.5),  # touches all four walls
        ([(0.5, 0.5, 0.625)], 0.125, 0.5),
        ([(0.25, 0.5, 0.25), (0.75, 0.5, 0.25)], 0, 0.5),  # touch each other
        ([(0.25, 0.5, 0.25), (0.625, 0.5, 0.25)], 0.0625, 0.375),  # overlap by 1/8
        ([(0.5, 0.5, 0.25), (0.5, 0.5, 0.125)], 0.25, 0),  # same centre: nothing fits
        ([(0.5, 0.5, 0.375), (0.5, 0.75, 0.0)], 0.125, 0.25),  # a point in a circle
        ([(0.0, 0.0, 0.125), (0.5, 0.5, 0.25)], 0.125, 0.125),  # a centre in the corner
    ],
)
def test_hand_worked(
    circles: list[tuple[float, float, float]], shrink: float, radii_sum: float
) -> None:
    exact = exact_packing(*packing(*circles))
    assert (exact.shrink, exact.radii_sum) == (Fraction(shrink), Fraction(radii_sum))


def test_an_overlap_far_below_float64_is_seen() -> None:
    centers, radii = packing((0.25, 0.5, 2**-60), (0.5, 0.5, 0.25))  # 1/4 apart
    assert float(radii[0] + radii[1]) == 0.25  # rounded, they touch
    assert exact_packing(centers, radii).shrink == Fraction(1, 2**61)


def test_the_distance_is_rounded_to_the_safe_side() -> None:
    centers, radii = packing((0.25, 0.25, 0.0), (0.5, 0.5, 0.0))
    radii[:] = math.sqrt(0.125) / 2 + 2**-50  # the distance is irrational
    shrink = exact_packing(centers, radii).shrink
    assert shrunk(centers, radii, shrink)
    assert not shrunk(centers, radii, shrink - Fraction(1, 2**GRID_BITS))


@pytest.mark.parametrize(
    ("circle", "message"),
    [
        ((0.5, 0.5, -1e-9), "circle 0 has a negative radius, -1e-09"),
        ((1.25, 0.5, 0.1), r"circle 0 has its center \(1.25, 0.5\) outside the square"),
        ((0.5, -5e-324, 0.0), "outside the square"),
        ((math.nan, 0.5, 0.1), "not finite"),
        ((0.5, 0.5, math.nan), "not finite"),
        ((0.5, 0.5, math.inf), "not finite"),
    ],
)
def test_what_can_not_be_shrunk_is_refused(
    circle: tuple[float, float, float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        exact_packing(*packing(circle))


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match=r"shapes \(3, 2\) and \(2,\)"):
        exact_packing(np.zeros((3, 2)), np.zeros(2))
    with pytest.raises(ValueError, match=r"shape \(n, 2\)"):
        circle_packing.excess(np.zeros((2, 2)), np.zeros(3))


UNIT_FLOATS = [0.0, 1.0, 0.5, 0.25, 5e-324, 2.0**-1022, 2.0**-60, 1 - 2.0**-53, 0.1]
RADII = [0.0, 5e-324, 2.0**-1022, 2.0**-60, 0.25, 0.5, 1.0, 1e300, 1.7e308]
NO_NUMBERS = [math.nan, math.inf, -math.inf]


def touching(rng: np.random.Generator, count: int) -> tuple[Floats, Floats]:
    """Return equal circles in rows, touching each other and the walls, nudged by a few ulps."""
    radius = 1.0 / (2 * count)
    places = (np.arange(count) * 2 + 1) * radius
    centers = np.column_stack([places, np.full(count, rng.choice([radius, 0.5, 1 - radius]))])
    radii = np.full(count, radius)
    for array in (centers, radii):
        steps = rng.integers(-2, 3, array.shape)
        array += steps * np.spacing(array) * (rng.random() < 0.7)
    return centers, radii


def leaning(rng: np.random.Generator, count: int) -> tuple[Floats, Floats]:
    """Return random circles, each so large that it touches a wall or its neighbour, nearly."""
    centers = rng.random((count, 2))
    walls = np.minimum(centers, 1 - centers).min(axis=1)
    distances = np.hypot(*(centers[:, None] - centers[None]).transpose(2, 0, 1))
    distances[np.diag_indices(count)] = np.inf
    radii = np.minimum(walls, distances.min(axis=1, initial=1.0) / 2)
    return centers, radii + rng.integers(-2, rng.choice([1, 3]), count) * np.spacing(radii)


def hostile_packing(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return 1 to 6 circles of a random kind, a few of them no packing at all."""
    count = int(rng.integers(1, 7))
    kind = rng.integers(7)
    if kind == 0:
        return touching(rng, count)
    if kind <= 2:
        return leaning(rng, count)
    if kind == 3:  # rim cases together: equal centres, subnormal and huge values
        return rng.choice(UNIT_FLOATS, (count, 2)), rng.choice(RADII, count)
    centers, radii = rng.random((count, 2)), rng.random(count) / count
    if kind == 4:
        centers *= 10.0 ** rng.integers(-330, 1, (count, 2))
        radii *= 10.0 ** rng.integers(-330, 300, count)
    if kind == 5:
        centers[rng.integers(count)] = centers[0]
        array = centers if rng.random() < 0.5 else radii
        array.flat[rng.integers(array.size)] = rng.choice(
            [*NO_NUMBERS, *UNIT_FLOATS, -5e-324, -1.0]
        )
    return centers, radii


def outcome(
    compute: Callable[[Floats, Floats], Packing], centers: Floats, radii: Floats
) -> Packing | str:
    """Return the exact packing or what was wrong."""
    try:
        return compute(centers, radii)
    except ValueError as error:
        return str(error)


def test_ten_thousand_hostile_packings_give_the_references_numbers() -> None:
    rng = np.random.default_rng(0)
    kinds = {"refused": 0, "shrunk": 0, "valid": 0}
    for _ in range(10_000):
        centers, radii = hostile_packing(rng)
        found = outcome(exact_packing, centers, radii)
        expected = outcome(circle_packing_reference.exact_packing, centers, radii)
        assert found == expected, (centers.tolist(), radii.tolist())
        kinds["refused" if isinstance(found, str) else "shrunk" if found.shrink else "valid"] += 1
    assert min(kinds.values()) > 400, kinds


def test_packings_of_26_circles_give_the_references_numbers() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        for centers, radii in (leaning(rng, 26), (rng.random((26, 2)), rng.random(26))):
            expected = circle_packing_reference.exact_packing(centers, radii)
            assert exact_packing(centers, radii) == expected
