"""The choice of parents, held against probabilities worked out by hand."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core import Candidate, Direction
from engine.search.parents import ParentSettings
from engine.search.parents.hybrid import HybridSettings
from engine.search.roster import best_of, normalised

UP, DOWN = Direction.MAXIMISE, Direction.MINIMISE
WEIGHTED = HybridSettings(policy="hybrid", p_elite=0.0, p_uniform=0.0, gamma=1.0, epsilon=0.001)
DRAWS = 4000


def candidates(*scores: float) -> list[Candidate]:
    return [Candidate(id=f"c{i}", program="x = 1", score=score) for i, score in enumerate(scores)]


def frequencies(
    scores: tuple[float, ...], settings: ParentSettings, direction: Direction = UP, seed: int = 1
) -> list[float]:
    """Return how often each candidate is chosen."""
    rng = np.random.default_rng(seed)
    among = candidates(*scores)
    counts = Counter(
        drawn(among, settings, direction, u=rng.random(), key=rng.integers(2**63)).id
        for _ in range(DRAWS)
    )
    return [counts[each.id] / DRAWS for each in among]


def drawn(
    among: list[Candidate],
    settings: ParentSettings,
    direction: Direction = UP,
    *,
    u: float,
    key: np.int64 | int,
) -> Candidate:
    return settings.make(direction=direction).choose(among, u=u, key=int(key)).candidate


def close(frequency: list[float], probability: list[float]) -> bool:
    """Whether no frequency is five standard deviations away from its probability."""
    return all(
        abs(f - p) <= 5 * math.sqrt(p * (1 - p) / DRAWS)
        for f, p in zip(frequency, probability, strict=True)
    )


@pytest.mark.parametrize(
    ("scores", "direction", "shares"),
    [
        ((1.0, 2.0, 3.0), UP, [0.0, 0.5, 1.0]),
        ((1.0, 2.0, 3.0), DOWN, [1.0, 0.5, 0.0]),
        ((-3.0, -1.0, -2.0), UP, [0.0, 1.0, 0.5]),
        ((0.0, 8.0, 2.0), DOWN, [1.0, 0.0, 0.75]),
        ((-1e308, 1e308, 0.0), UP, [0.0, 1.0, 0.5]),  # their difference is infinite
        ((1e-320, 0.0), UP, [1.0, 0.0]),
        ((5.0,), UP, [1.0]),
        ((-2.0, -2.0), DOWN, [1.0, 1.0]),
    ],
)
def test_scores_are_scaled_from_the_worst_to_the_best(
    scores: tuple[float, ...], direction: Direction, shares: list[float]
) -> None:
    assert normalised(candidates(*scores), direction) == pytest.approx(shares)


# s = (0, 1/2, 1) for the scores (1, 2, 3). Weights max(eps, s)^gamma, by hand:
@pytest.mark.parametrize(
    ("gamma", "epsilon", "probabilities"),
    [
        (1.0, 0.1, [0.1 / 1.6, 0.5 / 1.6, 1 / 1.6]),
        (2.0, 0.1, [0.01 / 1.26, 0.25 / 1.26, 1 / 1.26]),
        (3.0, 0.001, [1e-9 / 1.125, 0.125 / 1.125, 1 / 1.125]),
        (0.0, 0.001, [1 / 3, 1 / 3, 1 / 3]),  # uniform
        (1.0, 1.0, [1 / 3, 1 / 3, 1 / 3]),
        (1.0, 0.75, [0.75 / 2.5, 0.75 / 2.5, 1 / 2.5]),
        (1e6, 0.001, [0.0, 0.0, 1.0]),  # greedy
        (1e308, 1.0, [1 / 3, 1 / 3, 1 / 3]),
        (3.0, 5e-324, [0.0, 0.125 / 1.125, 1 / 1.125]),
    ],
)
def test_weighted_choice(gamma: float, epsilon: float, probabilities: list[float]) -> None:
    settings = replace(WEIGHTED, gamma=gamma, epsilon=epsilon)
    assert close(frequencies((1.0, 2.0, 3.0), settings), probabilities)
    assert close(frequencies((1.0, 2.0, 3.0), settings, DOWN), probabilities[::-1])
    assert close(frequencies((-30.0, -20.0, -10.0), settings, seed=2), probabilities)


def test_the_three_ways_are_mixed_as_their_shares_say() -> None:
    settings = HybridSettings(policy="hybrid", p_elite=0.3, p_uniform=0.4, gamma=1.0, epsilon=0.1)
    # 0.3 greedy + 0.4 uniform + 0.3 weighted (0.1, 0.5, 1) / 1.6
    expected = [
        0.4 / 3 + 0.3 * 0.1 / 1.6,
        0.4 / 3 + 0.3 * 0.5 / 1.6,
        0.3 + 0.4 / 3 + 0.3 * 1 / 1.6,
    ]
    assert sum(expected) == pytest.approx(1)
    assert close(frequencies((1.0, 2.0, 3.0), settings), expected)
    assert close(frequencies((3.0, 1.0, 2.0), settings, DOWN), [expected[i] for i in (0, 2, 1)])


def test_greedy_alone_and_uniform_alone() -> None:
    greedy = replace(WEIGHTED, p_elite=1.0)
    assert frequencies((1.0, 3.0, 2.0), greedy) == [0.0, 1.0, 0.0]
    assert frequencies((1.0, 3.0, 2.0), greedy, DOWN) == [1.0, 0.0, 0.0]
    uniform = replace(WEIGHTED, p_uniform=1.0)
    assert close(frequencies((1.0, 3.0, 2.0), uniform), [1 / 3, 1 / 3, 1 / 3])


def test_equal_scores_are_chosen_equally_often() -> None:
    assert close(frequencies((-1.0, -1.0, -1.0, -1.0), WEIGHTED), [0.25] * 4)


def test_the_only_candidate_is_always_the_parent() -> None:
    for settings in (WEIGHTED, replace(WEIGHTED, p_elite=1.0), replace(WEIGHTED, p_uniform=1.0)):
        assert frequencies((-7.0,), settings) == [1.0]


# The same u and key, among other candidates.


MIXED = HybridSettings(policy="hybrid", p_elite=0.25, p_uniform=0.25, gamma=2.0, epsilon=0.1)


@pytest.mark.parametrize("direction", Direction)
def test_u_says_which_way_is_taken_and_the_key_who_is_drawn(direction: Direction) -> None:
    among = candidates(*np.linspace(0.0, 1.0, 9))
    best = drawn(among, MIXED, direction, u=0.0, key=0)
    assert best == best_of(among, direction)
    for key in range(50):
        assert drawn(among, MIXED, direction, u=0.2499, key=key) == best
        for low, high in ((0.25, 0.4999), (0.5, 0.9999)):
            one, other = (drawn(among, MIXED, direction, u=u, key=key) for u in (low, high))
            assert one == other
            assert drawn(among[::-1], MIXED, direction, u=low, key=key) == one
    assert len({drawn(among, MIXED, direction, u=0.25, key=key).id for key in range(99)}) > 5


@pytest.mark.parametrize("score", [0.5, 3.0, -2.0])
def test_a_uniform_choice_changes_to_a_new_candidate_or_not_at_all(score: float) -> None:
    among = candidates(0.0, 1.0, 0.25)
    new = Candidate(id="new", program="x = 1", score=score)
    pairs = [
        (drawn(among, MIXED, u=0.3, key=key), drawn([*among, new], MIXED, u=0.3, key=key))
        for key in range(2000)
    ]
    assert all(after in (before, new) for before, after in pairs)
    share = sum(after == new for _, after in pairs) / 2000
    assert abs(share - 1 / 4) < 5 * math.sqrt(3 / 16 / 2000)


def test_a_weighted_choice_among_scores_of_the_same_span_changes_to_the_new_one_alone() -> None:
    among = candidates(0.0, 1.0, 0.25)
    new = Candidate(id="new", program="x = 1", score=0.5)
    for key in range(1000):
        before = drawn(among, MIXED, u=0.7, key=key)
        assert drawn([new, *among], MIXED, u=0.7, key=key) in (before, new)


def test_a_new_best_score_seldom_changes_the_choice_among_the_others() -> None:
    """By hand: with s = 0, 1 and 2 of 2 and then of 3, gamma 1, epsilon 0.1.

    The weights are 0.1, 1/2 and 1; then 0.1, 1/3, 2/3 and 1. So of the three that were there the
    shares are 1/16, 5/16, 10/16 and then 1/11, 10/33, 20/33: d = 1/11 - 1/16 = 0.028 apart. The new
    one wins with probability 1/2.1, and else at most 2 d / (1 + d) = 5.5 % may change.
    """
    settings = replace(WEIGHTED, epsilon=0.1)
    among = candidates(0.0, 1.0, 2.0)
    new = Candidate(id="new", program="x = 1", score=3.0)
    changed, won = 0, 0
    for key in range(4000):
        before, after = (drawn(each, settings, u=0.5, key=key) for each in (among, [*among, new]))
        won += after == new
        changed += after not in (before, new)
    assert abs(won / 4000 - 1 / 2.1) < 5 * math.sqrt(1 / 4 / 4000)
    assert 0 < changed / 4000 < 0.055


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6),
    st.sampled_from(Direction),
    st.floats(0, 1e308),
    st.floats(5e-324, 1),
    st.integers(0, 2**64 - 1),
)
def test_any_finite_scores_give_a_parent(
    scores: list[float], direction: Direction, gamma: float, epsilon: float, key: int
) -> None:
    among = candidates(*scores)
    settings = replace(WEIGHTED, gamma=gamma, epsilon=epsilon)
    assert drawn(among, settings, direction, u=0.5, key=key) in among
    shares = normalised(among, direction)
    assert shares.min() >= 0 and shares.max() == 1
    assert shares[among.index(best_of(among, direction))] == 1


def test_the_best_of_equal_ones_is_the_shortest_and_then_the_first() -> None:
    one = Candidate(id="one", program="x = 1000", score=1.0)
    short = Candidate(id="short", program="x = 1", score=1.0)
    later = Candidate(id="later", program="y = 2", score=1.0)
    worse = Candidate(id="worse", program="x", score=0.0)
    assert best_of([worse, one, short, later], UP) is short
    assert best_of([one, short, later, worse], DOWN) is worse
    assert best_of([one], DOWN) is one
