"""Cosines against hand-worked values, the plain reference and hostile input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from kernels import cosine_reference
from kernels.cosine import Vectors, cosines

values = st.floats(width=32, allow_nan=False, allow_infinity=False)


def rows(*vectors: tuple[float, ...]) -> Vectors:
    return np.array(vectors, dtype=np.float32)


@st.composite
def two_sets(draw: st.DrawFn) -> tuple[Vectors, Vectors]:
    d = draw(st.integers(0, 9))
    q, n = draw(st.integers(0, 4)), draw(st.integers(0, 6))
    return (
        draw(arrays(np.float32, (q, d), elements=values)),
        draw(arrays(np.float32, (n, d), elements=values)),
    )


@given(two_sets())
def test_agrees_with_the_reference(sets: tuple[Vectors, Vectors]) -> None:
    found = cosines(*sets)
    assert found.shape == (len(sets[0]), len(sets[1]))
    assert_allclose(found, cosine_reference.cosines(*sets), rtol=0, atol=1e-14)
    assert (np.abs(found) <= 1).all()


def test_agrees_with_the_reference_in_many_dimensions() -> None:
    rng = np.random.default_rng(0)
    queries = rng.normal(size=(3, 577)).astype(np.float32)
    others = rng.normal(size=(50, 577)).astype(np.float32)
    assert_allclose(
        cosines(queries, others), cosine_reference.cosines(queries, others), rtol=0, atol=1e-14
    )


def test_hand_worked() -> None:
    found = cosines(rows((3, 4)), rows((6, 8), (-3, -4), (4, -3), (1, 0), (0, 2), (7, 1)))
    # 3-4-5 and 7-1-sqrt(50): (21 + 4) / (5 sqrt(50)) = 1 / sqrt(2)
    assert_allclose(found, [[1, -1, 0, 0.6, 0.8, math.sqrt(0.5)]], rtol=0, atol=1e-15)


@given(arrays(np.float32, 7, elements=values))
def test_a_vector_is_exactly_like_itself_unless_it_is_zero(vector: Vectors) -> None:
    (found,) = cosines(vector[None], np.stack([vector, np.zeros_like(vector)]))
    assert found.tolist() == [1.0 if vector.any() else 0.0, 0.0]


def test_neither_the_largest_nor_the_smallest_numbers_lose_their_direction() -> None:
    huge, tiny = 3.4e38, 1.5e-45
    found = cosines(rows((huge, huge), (tiny, tiny)), rows((huge, 0), (0, tiny), (-huge, -huge)))
    half = math.sqrt(0.5)
    assert_allclose(found, [[half, half, -1], [half, half, -1]], rtol=0, atol=1e-15)


@pytest.mark.parametrize("shapes", [((0, 4), (3, 4)), ((2, 4), (0, 4)), ((0, 0), (0, 0))])
def test_no_vectors_have_no_cosines(shapes: tuple[tuple[int, int], tuple[int, int]]) -> None:
    found = cosines(*(np.ones(shape, np.float32) for shape in shapes))
    assert found.shape == (shapes[0][0], shapes[1][0])


def test_vectors_without_dimensions_have_no_direction() -> None:
    assert_array_equal(cosines(np.ones((2, 0), np.float32), np.ones((3, 0), np.float32)), 0.0)


def test_rows_need_not_lie_side_by_side() -> None:
    whole = np.random.default_rng(1).normal(size=(6, 8)).astype(np.float32)
    found = cosines(whole[:, ::2], whole[::2, 1::2])
    assert_allclose(
        found, cosine_reference.cosines(whole[:, ::2], whole[::2, 1::2]), rtol=0, atol=1e-14
    )


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused(bad: float) -> None:
    good = rows((1, 2))
    for pair in ((rows((bad, 1)), good), (good, rows((1, 2), (0, bad)))):
        with pytest.raises(ValueError, match="finite"):
            cosines(*pair)


def test_shapes_and_types_are_checked() -> None:
    with pytest.raises(ValueError, match="2 and 3 dimensions"):
        cosines(np.ones((1, 2), np.float32), np.ones((1, 3), np.float32))
    with pytest.raises(ValueError, match=r"queries .* shape \(2,\)"):
        cosines(np.ones(2, np.float32), np.ones((1, 2), np.float32))
    with pytest.raises(ValueError, match=r"others .* float64"):
        cosines(np.ones((1, 2), np.float32), np.ones((1, 2)))  # type: ignore[arg-type]
