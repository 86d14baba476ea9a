"""Weighted choices, by power and ShinkaEvolve's weights, against weights worked by hand."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from draws import candidates, counts, new_policy, outcome, p_value

from engine.core import Candidate, Direction

UP, DOWN = Direction.MAXIMISE, Direction.MINIMISE


# s = (0, 1/2, 1) for the scores (1, 2, 3); weights max(eps, s)^gamma.
@pytest.mark.parametrize(
    ("gamma", "epsilon", "weights"),
    [
        (1.0, 0.1, [0.1, 0.5, 1.0]),
        (2.0, 0.1, [0.01, 0.25, 1.0]),
        (0.0, 0.1, [1, 1, 1]),
        (1e308, 0.1, [0, 0, 1]),
    ],
)
def test_power(gamma: float, epsilon: float, weights: list[float]) -> None:
    for direction, expected in ((UP, weights), (DOWN, weights[::-1])):
        policy = new_policy("power", direction=direction, gamma=gamma, epsilon=epsilon)
        assert p_value(counts(policy, candidates(1.0, 2.0, 3.0)), expected) > 1e-4


def test_hybrid() -> None:
    """0.3 greedy + 0.4 uniform + 0.3 weighted (0.1, 0.5, 1) / 1.6, and which u takes which way."""
    policy = new_policy("hybrid", direction=UP, p_elite=0.3, p_uniform=0.4, gamma=1.0, epsilon=0.1)
    among = candidates(1.0, 2.0, 3.0)
    shares = [0.4 / 3 + 0.3 * each / 1.6 for each in (0.1, 0.5, 1.0)]
    assert p_value(counts(policy, among), [shares[0], shares[1], shares[2] + 0.3]) > 1e-4
    assert {policy.choose(among, u=0.299, key=key).candidate.id for key in range(99)} == {"c2"}
    seen = Counter(policy.choose(among, u=0.699, key=key).candidate.id for key in range(3000))
    assert p_value([seen["c0"], seen["c1"], seen["c2"]], [1, 1, 1]) > 1e-4
    seen = Counter(policy.choose(among, u=0.7, key=key).candidate.id for key in range(3000))
    assert p_value([seen["c0"], seen["c1"], seen["c2"]], [0.1, 0.5, 1]) > 1e-4
    rules = [policy.choose(among, u=u, key=5).rule for u in (0.0, 0.299, 0.3, 0.699, 0.7, 0.999)]
    assert rules == ["elite", "elite", "uniform", "uniform", "weighted", "weighted"]


@pytest.mark.parametrize("name", ["power", "shinka", "puct"])
def test_a_policy_with_one_way_calls_it_by_its_name(name: str) -> None:
    policy = new_policy(name, direction=UP)
    assert {policy.choose(candidates(1.0, 2.0), u=k / 9, key=k).rule for k in range(9)} == {name}


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_shinka_by_hand() -> None:
    """Scores 1, 2, 2.1, 4, 9: median 2.1, deviations 1.1, 0.1, 0, 1.9, 6.9, so MAD 1.1.

    With lambda = 1 the sigmoids are of -1, -0.0909, 0, 1.7273 and 6.2727. The last has three
    children and the fourth one, who has no score.
    """
    policy = new_policy("shinka", direction=UP, sharpness=1.0)
    policy.tell(outcome(0, "c4", a=1.0, b=None, c=2.0))
    policy.tell(outcome(1, "c3", d=None))
    weights = [
        sigmoid(-1),
        sigmoid(-0.1 / 1.1),
        0.5,
        sigmoid(1.9 / 1.1) / 2,
        sigmoid(6.9 / 1.1) / 4,
    ]
    assert weights == pytest.approx([0.26894, 0.47729, 0.5, 0.42453, 0.24953], abs=1e-5)
    assert p_value(counts(policy, candidates(1.0, 2.0, 2.1, 4.0, 9.0)), weights) > 1e-4


def test_shinka_as_it_is_by_default() -> None:
    """Lambda = 10: 0, 1, 2 have the MAD 1, and the weights sigmoid(-10, 0, 10)."""
    weights = [sigmoid(-10), 0.5, sigmoid(10)]
    up, down = (counts(new_policy("shinka", direction=d), candidates(0, 1, 2)) for d in (UP, DOWN))
    assert p_value(up[1:], weights[1:]) > 1e-4
    assert p_value(down[:2], weights[:0:-1]) > 1e-4
    assert up[0] + down[2] < 10


def test_shinka_draws_from_its_archive_and_takes_the_median_of_it() -> None:
    """The best three are 2, 3 and 4, with the MAD 1; of all seven the median would be 1."""
    among = candidates(0.0, 1.0, 1.0, 2.0, 4.0, 3.0, 1.0)
    got = counts(new_policy("shinka", direction=UP, archive=3), among)
    assert [got[at] for at in (0, 1, 2, 6)] == [0, 0, 0, 0] and got[3] < 10
    assert p_value([got[5], got[4]], [0.5, sigmoid(10)]) > 1e-4


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e300, 8.5e307])
def test_shinka_where_most_scores_are_equal(unit: float) -> None:
    """The MAD is 0, so 1e-6 stands for it: only the one that is far above the others is told.

    1e-9 above is 1e-3 of that: sigmoid(10 * 1e-3) = 0.5025 against 0.5.
    """
    policy = new_policy("shinka", direction=UP)
    best = sigmoid(0.01) if unit == 1e-9 else 1.0
    got = counts(policy, candidates(unit, 0.0, 0.0, 0.0))
    assert p_value(got, [best, 0.5, 0.5, 0.5]) > 1e-4


def test_shinka_with_a_range_that_is_not_finite() -> None:
    # The median is 0 and the MAD 1.7e308, so the sigmoids are of -10, 0 and 10.
    got = counts(new_policy("shinka", direction=UP), candidates(-1.7e308, 0.0, 1.7e308))
    assert p_value(got[1:], [0.5, sigmoid(10)]) > 1e-4 and got[0] < 10


def test_another_candidate_seldom_changes_who_is_drawn_of_the_others() -> None:
    """Drawn anew, two independent draws from eight would differ in most cases."""
    policy = new_policy("shinka", direction=UP, archive=9)
    among = candidates(*(i / 8 for i in range(8)))
    new = Candidate(id="new", program="x = 1", score=0.55)
    moved = sum(
        policy.choose([*among, new], u=0, key=key).candidate
        not in (new, policy.choose(among, u=0, key=key).candidate)
        for key in range(2000)
    )
    assert moved / 2000 < 0.1


def test_one_of_several_elites_is_drawn_uniformly() -> None:
    policy = new_policy("hybrid", direction=UP, p_elite=1.0, p_uniform=0.0, elites=3)
    among = candidates(*map(float, range(8)))
    assert p_value(counts(policy, among), [0] * 5 + [1] * 3) > 1e-4
