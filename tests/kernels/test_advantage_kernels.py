"""Advantages against hand-worked values, the references that enumerate subsets, and extremes."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from kernels import advantages_reference as reference
from kernels.advantages import (
    Vector,
    best_of_k,
    deviations,
    entropic,
    inverse_temperature,
    spread,
    standardised,
)

EPS = 1e-8
LN2 = math.log(2)
FEW = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0])  # so that rewards tie
rewards = st.integers(2, 8).flatmap(
    lambda n: arrays(np.float64, n, elements=st.floats(-1, 5, width=16) | FEW)
)


def vector(*values: float) -> Vector:
    return np.array(values, dtype=np.float64)


@given(rewards)
def test_moments_agree_with_the_reference(values: Vector) -> None:
    assert_allclose(deviations(values), reference.deviations(values), rtol=0, atol=1e-14)
    assert spread(values) == pytest.approx(reference.spread(values), rel=1e-12, abs=1e-14)
    assume(spread(values) > 1e-6)
    found = standardised(values, EPS)
    assert_allclose(found, reference.standardised(values, EPS), rtol=1e-7, atol=1e-7)


@given(rewards, st.integers(2, 8))
def test_best_of_k_agrees_with_all_subsets(values: Vector, k: int) -> None:
    assume(k <= values.size)
    found = best_of_k(values, k)
    assert_allclose(found, reference.best_of_k(values, k), rtol=0, atol=1e-13)
    assert (found >= 0).all()


@given(rewards, st.integers(2, 8))
def test_best_of_k_orders_the_children_as_their_rewards_do(values: Vector, k: int) -> None:
    assume(k <= values.size)
    found = best_of_k(values, k)
    order = np.argsort(values, kind="stable")
    assert (np.diff(found[order]) >= 0).all()
    assert (found[order[: k - 1]] == 0).all()
    for value in values:
        assert np.unique(found[values == value]).size == 1


def test_best_of_k_by_hand() -> None:
    # Of (0, 1, 3) the pairs are won by 1 (by 1), 3 (by 3) and 3 (by 2); there are 3 pairs.
    assert_allclose(best_of_k(vector(3, 0, 1), 2), [5 / 3, 0, 1 / 3])
    assert_allclose(best_of_k(vector(3, 0, 1), 3), [2, 0, 0])
    assert_allclose(best_of_k(vector(3, 3, 1), 3), [0, 0, 0])  # neither makes a difference


@pytest.mark.parametrize("k", [2, 4, 300, 2048, 4096])
def test_best_of_k_of_thousands(k: int) -> None:
    n = 4096
    order = np.random.default_rng(0).permutation(n)
    found = best_of_k(order.astype(np.float64), k)
    # All gaps are 1. In the mean over subsets, the winners win by the gap between the two largest
    # of k of n numbers, which is (n + 1) / (k + 1).
    assert found.sum() == pytest.approx((n + 1) / (k + 1), rel=1e-9)
    assert np.isfinite(found).all()
    assert found[order == n - 1][0] == found.max()


@pytest.mark.parametrize(("n", "k"), [(2, 2), (3, 2), (4, 3), (4, 4)])
@pytest.mark.parametrize("weights", [best_of_k, reference.subset_best])
def test_the_expected_gradient_is_that_of_the_best_of_k(
    n: int, k: int, weights: Callable[[Vector, int], Vector]
) -> None:
    """Eq. 1, by all outcomes of a policy over three actions against finite differences."""
    values, logits = vector(0.3, -1.0, 2.0), vector(0.2, 0.5, -0.4)

    def policy(theta: Vector) -> Vector:
        e = np.exp(theta - theta.max())
        return e / e.sum()

    def expected_best(theta: Vector) -> float:
        p = policy(theta)
        return sum(
            float(p[list(drawn)].prod() * values[list(drawn)].max())
            for drawn in product(range(3), repeat=k)
        )

    p, estimated = policy(logits), np.zeros(3)
    for drawn in product(range(3), repeat=n):
        actions = list(drawn)
        scores = np.eye(3)[actions] - p  # gradient of log p(action), shape (n, 3)
        estimated += p[actions].prod() * (weights(values[actions], k) @ scores)
    step = 1e-5
    exact = [
        (expected_best(logits + step * unit) - expected_best(logits - step * unit)) / (2 * step)
        for unit in np.eye(3)
    ]
    assert_allclose(estimated, exact, rtol=0, atol=1e-9)


@given(rewards, st.floats(1e-3, 1.5))
def test_the_divergence_is_gamma_or_out_of_reach(values: Vector, gamma: float) -> None:
    assume(np.ptp(values) > 0)
    ties = np.count_nonzero(values == values.max())
    beta = inverse_temperature(values, gamma)
    if gamma >= math.log(values.size / ties):
        assert math.isinf(beta)
    elif math.isinf(beta):
        assert gamma == pytest.approx(math.log(values.size / ties), abs=1e-12)
    else:
        assert reference.divergence(values, beta) == pytest.approx(gamma, abs=1e-6)


@given(rewards, st.sampled_from([0.01, 0.3, LN2, 1.2]))
def test_entropic_agrees_with_the_reference(values: Vector, gamma: float) -> None:
    # Beside gamma's limit a lone best child's advantage grows without bound, and so do errors.
    ties = np.count_nonzero(values == values.max())
    assume(np.ptp(values) > 1e-3 and gamma < 0.95 * math.log(values.size / ties))
    beta = inverse_temperature(values, gamma)
    assert beta == pytest.approx(reference.inverse_temperature(values, gamma), rel=1e-6)
    expected = reference.entropic(values, beta, EPS)
    assert_allclose(entropic(values, beta, EPS), expected, rtol=1e-9, atol=1e-9)


def test_entropic_by_hand() -> None:
    # With e = (1, 1/2, 1/2): 1 / (1/2) - 1, and (1/2) / (3/4) - 1 twice.
    found = entropic(vector(1, 0, 0), LN2, 0.0)
    assert_allclose(found, [1, -1 / 3, -1 / 3], rtol=1e-15)


def test_where_gamma_is_out_of_reach_the_best_share_all() -> None:
    tied = vector(2, 2, 2, 1, 0)
    assert math.log(5 / 3) < LN2
    beta = inverse_temperature(tied, LN2)
    assert math.isinf(beta)
    assert_allclose(entropic(tied, beta, EPS), [1, 1, 1, -1, -1])  # (N - 1) / (M - 1) - 1
    assert_allclose(entropic(tied, 1e6, 0.0), entropic(tied, beta, EPS))  # it is the limit
    assert math.isinf(inverse_temperature(vector(1, 0), LN2))  # ln(2 / 1), reached nowhere
    assert_array_equal(entropic(vector(1, 0), math.inf, EPS), [1, -1])  # a lone best has N - 1
    assert_array_equal(entropic(vector(0, 3, 0), math.inf, EPS), [-1, 2, -1])


def test_nearly_equal_best_rewards_stay_finite() -> None:
    values = vector(1, np.nextafter(1, 0), 0, 0)
    for gamma in (LN2, 1.0, 1.38):  # between ln(4 / 2) and ln(4 / 1) only the last digit decides
        beta = inverse_temperature(values, gamma)
        assert reference.divergence(values, beta) == pytest.approx(gamma, abs=1e-6)
        assert np.isfinite(entropic(values, beta, EPS)).all()


@pytest.mark.parametrize("scale", [1e300, 1e-300])
@pytest.mark.parametrize("signs", [(1, -1, 0, 0.5), (-1, -0.5, -1, 0)])
def test_extreme_rewards_are_ordinary_ones_at_another_scale(
    scale: float, signs: tuple[float, ...]
) -> None:
    one, scaled = vector(*signs), vector(*signs) * scale
    assert_allclose(deviations(scaled), deviations(one) * scale, rtol=1e-12)
    assert spread(scaled) == pytest.approx(spread(one) * scale, rel=1e-12)
    assert_allclose(standardised(scaled, 0.0), standardised(one, 0.0), rtol=1e-12)
    assert_allclose(best_of_k(scaled, 3), best_of_k(one, 3) * scale, rtol=1e-12)
    beta = inverse_temperature(scaled, 0.3)
    assert beta == pytest.approx(inverse_temperature(one, 0.3), rel=1e-9)
    assert_allclose(entropic(scaled, beta, EPS), entropic(one, beta, EPS), rtol=1e-9)


@given(st.floats(-1e300, 1e300), st.integers(1, 9))
def test_equal_rewards_have_no_deviation_at_all(value: float, count: int) -> None:
    values = np.full(count, value)
    assert not deviations(values).any()
    assert spread(values) == 0
    assert not standardised(values, EPS).any()
    if count > 1:
        assert not best_of_k(values, 2).any()
        assert math.isinf(inverse_temperature(values, LN2))
        assert not entropic(values, math.inf, EPS).any()
