"""The compiled signal kernels against their NumPy reference, on random and hostile input."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kernels import signal, signal_reference
from kernels.signal import Series

# Few distinct values make flat stretches and equal neighbours; the floats are of any usual size.
usual = st.sampled_from([-1.0, 0.0, 0.1, 1.0, 2.0]) | st.floats(-1e6, 1e6).map(
    lambda value: round(value, 6)
)
any_finite = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [math.ldexp(1.0, 1023), -1.7976931348623157e308, 1.7976931348623157e308, 5e-324, 0.0]
)


def rows(count: int, values: st.SearchStrategy[float]) -> st.SearchStrategy[tuple[Series, ...]]:
    """Return a strategy for ``count`` series of one length."""
    row = st.integers(1, 40).flatmap(
        lambda length: st.tuples(
            *[st.lists(values, min_size=length, max_size=length) for _ in range(count)]
        )
    )
    return row.map(lambda lists: tuple(np.array(values, dtype=np.float64) for values in lists))


@given(rows(3, usual))
@example((np.zeros(1), np.zeros(1), np.zeros(1)))
@example((np.full(30, 0.1), np.full(30, 0.2), np.full(30, 0.3)))
def test_measure_agrees_with_the_reference(arrays: tuple[Series, ...]) -> None:
    got, expected = signal.measure(*arrays), signal_reference.measure(*arrays)
    assert got._fields == expected._fields
    assert_allclose(got, expected, rtol=1e-9, atol=1e-9)


def test_measure_agrees_with_the_reference_on_noise() -> None:
    rng = np.random.default_rng(0)
    for length in (481, 881):
        arrays = rng.normal(size=(3, length))
        assert_allclose(
            signal.measure(*arrays), signal_reference.measure(*arrays), rtol=1e-12, atol=1e-13
        )


@given(rows(3, any_finite))
def test_no_finite_input_gives_nan(arrays: tuple[Series, ...]) -> None:
    got = signal.measure(*arrays)
    assert not any(math.isnan(value) for value in got)
    assert 1 / 3 - 1e-15 <= got.composite <= 1
    assert -1 <= got.correlation <= 1
    assert 0 <= got.noise_reduction <= 1
    assert 0 <= got.false_reversals <= got.slope_changes <= max(0, arrays[0].size - 2)


@given(rows(4, st.floats(-1, 1) | st.floats(0, 900)))
def test_overall_agrees_with_the_reference(arrays: tuple[Series, ...]) -> None:
    composites, changes, correlations, reductions = arrays
    correlations = np.clip(correlations, -1, 1)
    if abs(correlations.mean() - 0.1) < 1e-12:
        return  # on the step to 0, where the order of summation decides
    got = signal.overall(composites, np.abs(changes), correlations, reductions)
    expected = signal_reference.overall(composites, np.abs(changes), correlations, reductions)
    assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
