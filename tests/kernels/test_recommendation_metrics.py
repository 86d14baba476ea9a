"""The recommendation metrics on hand-worked lists, and compiled against reference."""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from kernels import recommendation, recommendation_reference
from kernels.recommendation import Items

FUNCTIONS = ("first_fault", "ranks", "ndcg", "hit_rate", "mrr", "measure")
both = pytest.mark.parametrize(
    "kernels", [recommendation, recommendation_reference], ids=["numba", "numpy"]
)


def items(*values: int) -> Items:
    return np.array(values, dtype=np.int64)


def test_every_kernel_has_its_reference() -> None:
    for name in FUNCTIONS:
        compiled, plain = getattr(recommendation, name), getattr(recommendation_reference, name)
        assert compiled.__name__ == plain.__name__ == name


@both
def test_ranks_count_from_1_and_are_0_for_a_miss(kernels: ModuleType) -> None:
    lists = np.array([[4, 2, 7], [4, 2, 7], [4, 2, 7], [1, 1, 0]])
    assert_array_equal(kernels.ranks(lists, items(4, 7, 5, 1)), [1, 3, 0, 1])


@both
def test_metrics_of_known_ranks(kernels: ModuleType) -> None:
    found = items(1, 3, 0, 11)  # two within 10, one past it, one missed
    assert kernels.ndcg(found, 10) == pytest.approx((1 + 1 / 2) / 4)  # 1 / log2(1 + 3) = 1 / 2
    assert kernels.ndcg(found, 50) == pytest.approx((1 + 1 / 2 + 1 / math.log2(12)) / 4)
    assert kernels.hit_rate(found, 10) == 0.5
    assert kernels.hit_rate(found, 50) == 0.75
    assert kernels.mrr(found) == pytest.approx((1 + 1 / 3 + 1 / 11) / 4)


@both
def test_the_cutoff_itself_counts(kernels: ModuleType) -> None:
    assert kernels.hit_rate(items(10), 10) == 1
    assert kernels.ndcg(items(10), 10) == pytest.approx(1 / math.log2(11))
    assert kernels.hit_rate(items(11), 10) == kernels.ndcg(items(11), 10) == 0


@both
def test_measure(kernels: ModuleType) -> None:
    lists = np.tile(np.arange(60), (3, 1))
    got = kernels.measure(lists, items(0, 20, 59))
    assert got.hit_rate_10 == pytest.approx(1 / 3)
    assert got.hit_rate_50 == pytest.approx(2 / 3)
    assert got.ndcg_10 == pytest.approx(1 / 3)
    assert got.ndcg_50 == pytest.approx((1 + 1 / math.log2(22)) / 3)
    assert got.mrr == pytest.approx((1 + 1 / 21 + 1 / 60) / 3)


@both
@pytest.mark.parametrize(
    ("lists", "fault"),
    [
        ([[0, 1, 2], [2, 1, 0]], (-1, -1)),
        ([[0, 1, 2], [2, 1, 2]], (1, 2)),
        ([[0, 0, 0], [9, 1, 2]], (0, 1)),
        ([[0, 1, 3], [0, 1, 2]], (0, 2)),  # items are 0, 1, 2
        ([[0, 1, 2], [-1, 1, 2]], (1, 0)),
        ([[0, 1, 2], [0, 1, 2**63 - 1]], (1, 2)),
        ([[0, 1, -(2**63)], [0, 1, 2]], (0, 2)),
    ],
)
def test_first_fault(kernels: ModuleType, lists: list[list[int]], fault: tuple[int, int]) -> None:
    assert kernels.first_fault(np.array(lists, dtype=np.int64), 3) == fault


@pytest.mark.parametrize(("users", "targets"), [(2, 3), (3, 2), (0, 0)])
def test_measure_refuses_counts_that_differ_or_are_0(users: int, targets: int) -> None:
    with pytest.raises(ValueError, match="as many lists as targets"):
        recommendation.measure(
            np.zeros((users, 4), dtype=np.int64), np.zeros(targets, dtype=np.int64)
        )


@given(st.data())
def test_the_kernels_agree_with_the_reference(data: st.DataObject) -> None:
    users, k = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 14))
    entry = st.integers(-2, 16)
    lists = data.draw(arrays(np.int64, (users, k), elements=entry))
    targets = data.draw(arrays(np.int64, users, elements=entry))
    assert recommendation.first_fault(lists, 15) == recommendation_reference.first_fault(lists, 15)
    found = recommendation.ranks(lists, targets)
    assert_array_equal(found, recommendation_reference.ranks(lists, targets))
    got = recommendation.measure(lists, targets)
    assert_allclose(got, recommendation_reference.measure(lists, targets), rtol=1e-14)
    assert all(0 <= value <= 1 for value in got)
    assert got.mrr <= got.ndcg_50 + 1e-15  # 1 / r <= 1 / log2(1 + r)


def test_they_agree_on_full_rankings() -> None:
    rng = np.random.default_rng(0)
    lists = rng.permuted(np.tile(np.arange(300), (200, 1)), axis=1)[:, :100]
    targets = rng.integers(0, 300, 200)
    got = recommendation.measure(lists, targets)
    assert_allclose(got, recommendation_reference.measure(lists, targets), rtol=1e-13)
    assert recommendation.first_fault(lists, 300) == (-1, -1)
    assert got.hit_rate_50 == pytest.approx(50 / 300, abs=0.08)  # chance, 3 standard errors
