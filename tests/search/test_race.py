"""The race: who wins how often, by hand and by chi-square, and what another contestant changes."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from engine.search.race import hashes_of, inside_unit, uniforms, winner

RACES = 6000


def won(ids: list[str], log_weights: NDArray[np.float64], *, key: int) -> int:
    """Return the place of the winner among the contestants of these ids."""
    return winner(hashes_of(ids), log_weights, key=key)


def times(ids: list[str], *, key: int) -> NDArray[np.float64]:
    """Return E of each contestant."""
    return -np.log(uniforms(hashes_of(ids), key=key))


def chi_square(counts: list[int], shares: list[float]) -> float:
    """Return the probability of counts at least as far from what the shares lead to expect."""
    total = sum(counts)
    expected = [share * total for share in shares]
    distance = sum((c - e) ** 2 / e for c, e in zip(counts, expected, strict=True))
    return float(chi2.sf(distance, df=len(counts) - 1))


def wins(ids: list[str], weights: list[float], keys: list[int]) -> list[int]:
    logs = np.log(weights)
    counts = Counter(won(ids, logs, key=key) for key in keys)
    return [counts[place] for place in range(len(ids))]


@pytest.mark.parametrize("first", [0, 2**40, 2**64 - RACES])
@pytest.mark.parametrize(
    "weights",
    [[1.0] * 8, [1.0, 2.0, 3.0, 4.0], [1e-3, 1.0, 0.1], [1e-200, 3e-200], [5.0, 5.0, 90.0]],
)
def test_each_wins_as_often_as_its_weight_says(weights: list[float], first: int) -> None:
    ids = [f"{place}.0" for place in range(len(weights))]
    counts = wins(ids, weights, list(range(first, first + RACES)))
    shares = [weight / sum(weights) for weight in weights]
    assert chi_square(counts, shares) > 1e-5


def test_races_of_neighbouring_keys_have_nothing_to_do_with_each_other() -> None:
    ids = ["0.0", "0.1", "0.2"]
    winners = [won(ids, np.zeros(3), key=key) for key in range(RACES)]
    pairs = Counter(zip(winners[::2], winners[1::2], strict=True))
    counts = [pairs[one, other] for one in range(3) for other in range(3)]
    assert chi_square(counts, [1 / 9] * 9) > 1e-5


def test_the_times_are_exponential() -> None:
    # P(E > t) = e^-t, in ten parts of equal probability.
    ids = [f"{iteration}.{index}" for iteration in range(500) for index in range(8)]
    bounds = [-math.log(1 - part / 10) for part in range(1, 10)]
    counts = Counter(int(np.searchsorted(bounds, time)) for time in times(ids, key=17))
    assert chi_square([counts[part] for part in range(10)], [0.1] * 10) > 1e-5


def test_the_uniforms_are_uniform_and_each_depends_on_its_name_and_the_key_alone() -> None:
    names = [f"widen {iteration}.{index}" for iteration in range(500) for index in range(8)]
    numbers = uniforms(hashes_of(names), key=17)
    assert numbers.min() > 0 and numbers.max() < 1
    counts = np.histogram(numbers, bins=10, range=(0, 1))[0]
    assert chi_square(counts.tolist(), [0.1] * 10) > 1e-5
    assert uniforms(hashes_of(names[5:3:-1]), key=17).tolist() == numbers[5:3:-1].tolist()
    assert not np.isclose(uniforms(hashes_of(names[:50]), key=18), numbers[:50]).any()


def test_no_hash_is_at_an_end_of_the_interval() -> None:
    """The topmost one was 1, whose time is 0: it won whatever the weights, as ln 0 = -inf."""
    hashes = np.array([0, 2**63, 2**64 - 2**12, 2**64 - 2**11, 2**64 - 1], dtype=np.uint64)
    expected = [2.0**-54, 0.5, 1 - 2.0**-52, 1 - 2.0**-53, 1 - 2.0**-53]
    assert inside_unit(hashes).tolist() == expected


def test_the_first_to_arrive_wins() -> None:
    ids, weights = ["a", "b", "c"], np.array([1.0, 2.0, 3.0])
    winners = {key: won(ids, np.log(weights), key=key) for key in range(200)}
    assert winners == {key: int(np.argmin(times(ids, key=key) / weights)) for key in range(200)}
    assert {*winners.values()} == {0, 1, 2}
    # One number stands for equal weights.
    for key in range(200):
        assert winner(hashes_of(ids), 0.0, key=key) == won(ids, np.zeros(3), key=key)


def test_one_without_weight_never_wins_and_the_only_one_always() -> None:
    with np.errstate(divide="ignore"):
        logs = np.log([0.0, 1e-300, 0.0])
    assert {won(["a", "b", "c"], logs, key=key) for key in range(200)} == {1}
    assert {won(["a"], np.array([-1e300]), key=key) for key in range(50)} == {0}


names = st.lists(st.text(max_size=8), min_size=1, max_size=8, unique=True)


@given(names, st.text(max_size=8), st.floats(-5, 5), st.integers(0, 2**64 - 1), st.randoms())
def test_another_contestant_wins_or_changes_nothing(
    ids: list[str], new: str, log_weight: float, key: int, rng: np.random.Generator
) -> None:
    logs = np.array([rng.uniform(-5, 5) for _ in ids])
    before = ids[won(ids, logs, key=key)]
    after = [*ids, new][won([*ids, new], np.append(logs, log_weight), key=key)]
    assert after in (before, new)


@given(names, st.integers(0, 2**64 - 1))
def test_the_order_of_the_contestants_does_not_matter(ids: list[str], key: int) -> None:
    logs = np.linspace(-1, 1, len(ids))
    assert ids[won(ids, logs, key=key)] == ids[::-1][won(ids[::-1], logs[::-1], key=key)]


@given(
    st.lists(st.floats(0.01, 1), min_size=2, max_size=5),
    st.lists(st.floats(0.01, 1), min_size=2, max_size=5),
    st.integers(0, 2**60),
)
def test_winners_agree_at_least_as_often_as_the_distance_of_the_weights_promises(
    one: list[float], other: list[float], first: int
) -> None:
    size = min(len(one), len(other))
    p, q = (np.array(each[:size]) / sum(each[:size]) for each in (one, other))
    ids = [f"{place}.1" for place in range(size)]
    agreed = sum(
        won(ids, np.log(p), key=key) == won(ids, np.log(q), key=key)
        for key in range(first, first + 300)
    )
    distance = float(np.abs(p - q).sum() / 2)
    assert agreed / 300 >= (1 - distance) / (1 + distance) - 6 * math.sqrt(1 / 4 / 300)
