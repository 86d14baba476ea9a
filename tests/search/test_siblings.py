"""Siblings: the beta-binomial against hand-worked values, and its posterior."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from engine.search.widths.siblings import FALL, MEMORY, Odds, SiblingOdds


def test_a_rate_that_is_uniform_misses_k_times_with_probability_1_in_k_plus_1() -> None:
    # rho = 1/3 and p = 1/2 make alpha = beta = 1: E[(1 - theta)^K] is the integral of x^K.
    chances = Odds(rate=0.5, correlation=1 / 3, fall=0).of_any(5)
    assert chances == pytest.approx([1 / 2, 2 / 3, 3 / 4, 4 / 5, 5 / 6])


def test_siblings_that_hardly_correlate_are_independent() -> None:
    assert Odds(rate=0.098, correlation=1e-9, fall=0).of_any(8)[-1] == pytest.approx(1 - 0.902**8)


def test_the_priors_correlation_explains_what_parallel_exploration_reports() -> None:
    assert Odds(rate=0.098, correlation=0.264, fall=0).of_any(8)[-1] == pytest.approx(
        8 * 0.043, rel=0.005
    )


@given(st.floats(1e-3, 0.95), st.floats(0.01, 0.9), st.integers(1, 100))
def test_the_chance_is_that_of_the_beta_binomial(rate: float, correlation: float, k: int) -> None:
    total = 1 / correlation - 1
    none = stats.betabinom.pmf(0, k, rate * total, (1 - rate) * total)
    chances = Odds(rate=rate, correlation=correlation, fall=0).of_any(k)
    assert chances[-1] == pytest.approx(1 - none, rel=1e-6)
    assert chances[0] == pytest.approx(rate)
    assert (np.diff(chances) >= 0).all()


def test_each_childs_rate_falls_as_parallel_exploration_reports() -> None:
    """9.8 % at K = 1 and 4.3 % at K = 8: b = ln(9.8 / 4.3) / ln 8; by the same power 6.5 % at 3."""
    odds = Odds(rate=0.098, correlation=1e-9, fall=0.396)
    rates = odds.of_each(8)
    assert (rates[0], rates[7]) == (0.098, pytest.approx(0.043, rel=0.002))
    assert rates[2] == pytest.approx(0.098 * np.exp(-0.396 * np.log(3)))
    # Children that hardly correlate: 1 - (1 - 0.043)^8 = 0.2966
    assert odds.of_any(8)[-1] == pytest.approx(1 - (1 - rates[7]) ** 8)
    assert odds.of_any(8)[-1] == pytest.approx(0.2966, abs=0.001)


def test_two_children_by_hand_where_the_rate_falls() -> None:
    # rho = 1/3, so alpha + beta = 2; b = 1 halves p = 1/2: alpha = 1/2, beta = 3/2 at K = 2.
    # None improves with 3/2 / 2 * 5/2 / 3 = 5/8.
    chances = Odds(rate=0.5, correlation=1 / 3, fall=1).of_any(2)
    assert chances[0] == pytest.approx(1 / 2)
    assert 1 - 5 / 8 == 3 / 8  # less than of a single child, which a call of two holds as well
    assert chances[1] == pytest.approx(1 / 2)


@given(st.floats(1e-3, 0.95), st.floats(0.01, 0.95), st.floats(0, 1))
def test_more_children_are_never_less_likely_to_hold_an_improvement(
    rate: float, correlation: float, fall: float
) -> None:
    odds = Odds(rate=rate, correlation=correlation, fall=fall)
    chances, each = odds.of_any(40), odds.of_each(40)
    assert (np.diff(chances) >= 0).all() and (np.diff(each) <= 0).all()
    assert (chances > 0).all() and (chances <= 1).all()


def test_a_rate_that_falls_is_learned_from_calls_of_different_widths() -> None:
    """Of 64 children a width, 8 of single ones improve and 2 of those of calls of eight."""
    falling, level = SiblingOdds(), SiblingOdds()
    for number in range(64):
        falling.tell(children=1, improved=number % 8 == 0)
        level.tell(children=1, improved=number % 8 == 0)
        if number % 8 == 0:
            falling.tell(children=8, improved=int(number % 32 == 0))
            level.tell(children=8, improved=1)
    rng = np.random.default_rng(0)
    falls = [np.mean([odds.draw(rng).fall for _ in range(1000)]) for odds in (falling, level)]
    assert falls[0] > falls[1] + 0.05


def test_tiny_rates_lose_no_digits() -> None:
    # alpha sum of 1 / (alpha + beta + j), to first order; rho = 1/3: 2 p (1/2 + 1/3)
    assert Odds(rate=1e-15, correlation=1 / 3, fall=0).of_any(2)[-1] == pytest.approx(
        5e-15 / 3, rel=1e-9
    )


def draws(odds: SiblingOdds, *, count: int = 3000) -> tuple[NDArray[np.float64], ...]:
    """Return the rates and the correlations of draws from the posterior."""
    rng = np.random.default_rng(0)
    found = [odds.draw(rng) for _ in range(count)]
    return np.array([each.rate for each in found]), np.array([each.correlation for each in found])


def reference(calls: list[tuple[int, int]]) -> tuple[float, float]:
    """Return the posterior means of rate and correlation, integrated on a fine grid."""
    rates = np.exp(np.linspace(np.log(0.001), np.log(0.9), 100))[:, np.newaxis, np.newaxis]
    correlations = np.linspace(0.004, 0.996, 125)[:, np.newaxis]
    falls = np.linspace(0, 0.6, 13)
    total = 1 / correlations - 1
    log_weights = np.log(stats.beta.pdf(correlations, 1, 3)) - falls / FALL + np.zeros_like(rates)
    for age, (children, improved) in enumerate(reversed(calls)):
        alpha = rates * children**-falls * total
        likelihood = stats.betabinom.logpmf(improved, children, alpha, total - alpha)
        log_weights = log_weights + MEMORY**age * likelihood
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    return float((weights * rates).sum()), float((weights * correlations).sum())


@pytest.mark.parametrize(
    "calls",
    [
        [],
        [(8, 0)] * 12,
        [(8, 1), (8, 0), (4, 0), (1, 1), (8, 0), (2, 0)] * 3,
        [(8, 8), (8, 0), (8, 0), (8, 7), (8, 0)] * 4,
    ],
)
def test_draws_come_from_the_posterior(calls: list[tuple[int, int]]) -> None:
    odds = SiblingOdds()
    for children, improved in calls:
        odds.tell(children=children, improved=improved)
    rates, correlations = draws(odds)
    rate, correlation = reference(calls)
    assert rates.mean() == pytest.approx(rate, rel=0.12)
    assert correlations.mean() == pytest.approx(correlation, rel=0.12)


def test_a_call_without_children_says_nothing() -> None:
    odds = SiblingOdds()
    odds.tell(children=0, improved=0)
    before, after = draws(SiblingOdds(), count=50), draws(odds, count=50)
    assert [list(each) for each in before] == [list(each) for each in after]


def test_what_was_long_ago_is_forgotten() -> None:
    odds = SiblingOdds()
    for improved in [4] * 100 + [0] * 400:
        odds.tell(children=8, improved=improved)
    assert draws(odds, count=300)[0].mean() < 0.02
