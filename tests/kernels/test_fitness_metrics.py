"""The fitness metrics: hand-worked, against the reference and against SciPy."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from kernels import fitness, fitness_reference
from kernels.fitness import Series

both = pytest.mark.parametrize("kernels", [fitness, fitness_reference], ids=["numba", "numpy"])

# Few distinct values make ties; the floats are of any usual size.
usual = st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0]) | st.floats(-1e6, 1e6).map(
    lambda value: round(value, 6)
)
pairs = st.integers(5, 30).flatmap(
    lambda n: st.tuples(
        arrays(np.float64, n, elements=usual), arrays(np.float64, n, elements=usual)
    )
)


def series(*values: float) -> Series:
    return np.array(values, dtype=np.float64)


def test_every_kernel_has_its_reference() -> None:
    for name in ("average_ranks", "precision_at", "measure"):
        assert getattr(fitness, name).__name__ == getattr(fitness_reference, name).__name__ == name


@both
@pytest.mark.parametrize(
    ("values", "ranks"),
    [
        ((3, 1, 2), (3, 1, 2)),
        ((5, 5, 1), (2.5, 2.5, 1)),
        ((7, 7, 7, 7), (2.5, 2.5, 2.5, 2.5)),
        ((0.0, -0.0, -1), (2.5, 2.5, 1)),
        ((1e308, -1e308, 5e-324), (3, 1, 2)),
        ((4,), (1,)),
    ],
)
def test_average_ranks(
    kernels: ModuleType, values: tuple[float, ...], ranks: tuple[float, ...]
) -> None:
    assert_array_equal(kernels.average_ranks(series(*values)), ranks)


@both
@pytest.mark.parametrize(
    ("predicted", "precision"),
    [
        ((4, 3, 2, 1, 0), 1),  # the two best measured are the first two
        ((0, 1, 2, 3, 4), 0),
        ((9, 0, 8, 0, 0), 0.5),
        ((1, 1, 1, 1, 1), 2 / 5),  # chance
        ((9, 1, 1, 1, 1), (1 + 1 / 4) / 2),  # one of four tied for the second place is right
        ((1, 1, 9, 1, 0), (2 / 3) / 2),
    ],
)
def test_precision_breaks_ties_of_predictions_by_expectation(
    kernels: ModuleType, predicted: tuple[float, ...], precision: float
) -> None:
    measured = series(5, 4, 3, 2, 1)
    got = kernels.precision_at(series(*predicted), measured, 2)
    assert got == pytest.approx(precision, rel=1e-14)


@both
def test_measured_ties_at_the_last_place_all_count(kernels: ModuleType) -> None:
    measured = series(5, 4, 4, 4, 1)
    assert kernels.precision_at(series(0, 0, 0.1, 0.2, 0), measured, 2) == 1
    assert kernels.precision_at(series(0, 0, 0, 0.2, 0.1), measured, 2) == 0.5


@both
def test_measure_puts_the_metrics_together(kernels: ModuleType) -> None:
    got = kernels.measure(series(1, 2, 3, 4, 5, 0), series(1, 2, 3, 4, 50, -9))
    assert got.precision_at_5 == got.spearman == pytest.approx(1)
    assert 0 < got.pearson < 1


@both
@pytest.mark.parametrize("value", [0.0, 0.1, -1e308, 5e-324])
def test_a_constant_prediction_gets_no_correlation_and_the_precision_of_chance(
    kernels: ModuleType, value: float
) -> None:
    got = kernels.measure(np.full(20, value), np.arange(20.0))
    assert (got.pearson, got.spearman) == (0, 0)
    assert got.precision_at_5 == pytest.approx(5 / 20)


@pytest.mark.parametrize(("one", "other"), [(6, 7), (7, 6), (4, 4), (0, 0)])
def test_lengths_that_differ_or_are_too_short_are_refused(one: int, other: int) -> None:
    with pytest.raises(ValueError, match="one length that is at least top"):
        fitness.measure(np.zeros(one), np.zeros(other))


@given(pairs)
def test_the_kernels_agree_with_the_reference(given_pair: tuple[Series, Series]) -> None:
    predicted, measured = given_pair
    got = fitness.measure(predicted, measured)
    expected = fitness_reference.measure(predicted, measured)
    assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
    assert 0 <= got.precision_at_5 <= 1


@given(pairs)
def test_spearman_and_ranks_agree_with_scipy(given_pair: tuple[Series, Series]) -> None:
    predicted, measured = given_pair
    assert_array_equal(fitness.average_ranks(predicted), stats.rankdata(predicted))
    assume(np.ptp(predicted) > 0 and np.ptp(measured) > 0)  # SciPy gives NaN
    expected = stats.spearmanr(predicted, measured).statistic
    assert fitness.measure(predicted, measured).spearman == pytest.approx(expected, abs=1e-12)


def test_pearson_agrees_with_scipy() -> None:
    rng = np.random.default_rng(0)
    for predicted, measured in rng.normal(size=(50, 2, 200)):
        expected = stats.pearsonr(predicted, measured).statistic
        assert fitness.measure(predicted, measured).pearson == pytest.approx(expected, abs=1e-13)


def test_expected_precision_is_the_mean_over_random_orders() -> None:
    rng = np.random.default_rng(0)
    predicted = rng.integers(0, 3, 30).astype(np.float64)
    measured = rng.normal(size=30)
    best = set(np.argsort(-measured)[:5])
    drawn = []
    for _ in range(4000):
        order = rng.permutation(30)
        picked = order[np.argsort(-predicted[order], kind="stable")[:5]]
        drawn.append(len(best & set(picked)) / 5)
    expected = fitness.precision_at(predicted, measured, 5)
    assert expected == pytest.approx(np.mean(drawn), abs=4 * np.std(drawn) / 4000**0.5)


@given(pairs, st.randoms(use_true_random=False))
def test_the_order_of_the_variants_does_not_matter(
    given_pair: tuple[Series, Series], random: np.random.Generator
) -> None:
    predicted, measured = given_pair
    order = list(range(predicted.size))
    random.shuffle(order)
    assert_allclose(
        fitness.measure(predicted[order], measured[order]),
        fitness.measure(predicted, measured),
        rtol=1e-12,
        atol=1e-12,
    )
