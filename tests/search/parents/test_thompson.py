"""The walk of AB-MCTS: the posterior by hand, its draws by chi-squared, and where walks end."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from draws import candidates, counts, new_policy, outcome, p_value
from scipy.stats import chi2, invgamma, t

from engine.core import Candidate, Direction
from engine.search.parents import ParentPolicy
from engine.search.parents.thompson import draws, posterior

UP, DOWN = Direction.MAXIMISE, Direction.MINIMISE


def totals(*rewards: float) -> list[float]:
    return [len(rewards), sum(rewards), sum(each**2 for each in rewards)]


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ((), (0.0, 1, 1, 0.1)),
        # y = 1: m' = 1/2, tau'^2 = (0.1 + 0 + 1 * 1 * 1 / 2) / 2
        ((1.0,), (0.5, 2, 2, 0.3)),
        # y = 3/4, S = 1/8: m' = 1.5 / 3, tau'^2 = (0.1 + 0.125 + 2 * 0.5625 / 3) / 3
        ((0.5, 1.0), (0.5, 3, 3, 0.2)),
        # y = 1/2, S = 1/2: m' = 1 / 3, tau'^2 = (0.1 + 0.5 + 2 * 0.25 / 3) / 3
        ((0.0, 1.0), (1 / 3, 3, 3, 0.2555556)),
        ((0.0, 0.0, 0.0), (0.0, 4, 4, 0.025)),
    ],
)
def test_the_posterior_by_hand(rewards: tuple[float, ...], expected: tuple[float, ...]) -> None:
    assert np.array(posterior(np.array(totals(*rewards)))) == pytest.approx(expected)


def test_the_posterior_is_the_one_of_the_batch_however_it_is_split() -> None:
    """Folding 0.5 into the prior, and 1.0 into that: kappa, nu, m, tau^2 by (1) and (2) again."""
    m, kappa, nu, tau2 = 0.0, 1.0, 1.0, 0.1
    for y in (0.5, 1.0):
        tau2 = (nu * tau2 + kappa * (m - y) ** 2 / (kappa + 1)) / (nu + 1)
        m, kappa, nu = (kappa * m + y) / (kappa + 1), kappa + 1, nu + 1
    assert np.array(posterior(np.array(totals(0.5, 1.0)))) == pytest.approx([m, kappa, nu, tau2])


def uniformity(numbers: np.ndarray) -> float:
    """Return the chi-squared probability of numbers that should be uniform on (0, 1)."""
    found = np.histogram(numbers, bins=10, range=(0, 1))[0]
    expected = len(numbers) / 10
    return float(chi2.sf(((found - expected) ** 2 / expected).sum(), df=9))


@pytest.mark.parametrize("rewards", [(), (0.5, 1.0), (0.2, 0.3, 0.4, 0.9)])
def test_draws_are_students_t(rewards: tuple[float, ...]) -> None:
    seen = np.array([totals(*rewards)])
    drawn = np.array([draws(["a"], seen, key=key)[0] for key in range(5000)])
    m, kappa, nu, tau2 = (float(each[0]) for each in posterior(seen))
    assert uniformity(t.cdf((drawn - m) / np.sqrt(tau2 / kappa), df=nu)) > 1e-4


def test_the_t_is_the_mean_of_a_normal_of_unknown_variance() -> None:
    """As TreeQuest draws it: sigma^2 ~ InvGamma(nu/2, nu tau^2 / 2), mu ~ N(m, sigma^2 / kappa)."""
    m, kappa, nu, tau2 = (float(each) for each in posterior(np.array(totals(0.5, 1.0))))
    rng = np.random.default_rng(3)
    variance = invgamma.rvs(nu / 2, scale=nu * tau2 / 2, size=20_000, random_state=rng)
    mu = rng.normal(m, np.sqrt(variance / kappa))
    assert uniformity(t.cdf((mu - m) / np.sqrt(tau2 / kappa), df=nu)) > 1e-4


def test_a_draw_depends_on_nothing_of_the_others() -> None:
    seen = np.array([totals(0.5), totals(0.1, 0.9), totals()])
    alone = [draws([name], seen[i : i + 1], key=8)[0] for i, name in enumerate("abc")]
    assert draws(["a", "b", "c"], seen, key=8) == pytest.approx(alone)
    assert draws(["c", "a"], seen[[2, 0]], key=8) == pytest.approx([alone[2], alone[0]])
    assert draws(["a"], seen[:1], key=9) != pytest.approx(alone[0])


def exceeds(one: list[float], other: list[float]) -> float:
    """Return how likely a draw for the first is larger than one for the second, by integration."""
    (m0, k0, n0, t0), (m1, k1, n1, t1) = (
        [float(each) for each in posterior(np.array(seen))] for seen in (one, other)
    )
    at = t.ppf((np.arange(20_000) + 0.5) / 20_000, df=n0) * np.sqrt(t0 / k0) + m0
    return float(t.cdf((at - m1) / np.sqrt(t1 / k1), df=n1).mean())


def test_a_leaf_is_widened() -> None:
    root, *_ = candidates(1.0)
    assert all(
        new_policy("thompson", direction=UP).choose([root], u=0, key=k).candidate == root
        for k in range(50)
    )


def test_widen_or_deepen_at_the_root() -> None:
    """c0 = 0 has the children a = 1/2 and b = 1, which have none: deepen has seen nothing.

    c0 is chosen with the probability that a draw given (1/2, 1) is larger than one of the prior;
    of the others, a's tree has seen 1/2 and b's 1.
    """
    policy, among = family()
    widen = exceeds(totals(0.5, 1.0), totals())
    of_b = exceeds(totals(1.0), totals(0.5))
    shares = [widen, (1 - widen) * (1 - of_b), (1 - widen) * of_b]
    assert p_value(counts(policy, among), shares) > 1e-4
    assert 0.7 < widen < 0.9 and of_b > 0.55


def family(sign: int = 1, direction: Direction = UP) -> tuple[ParentPolicy, list[Candidate]]:
    policy = new_policy("thompson", direction=direction)
    policy.tell(outcome(0, "c0", a=0.5 * sign, b=1.0 * sign))
    made = [Candidate(id=i, program="x", score=s * sign) for i, s in (("a", 0.5), ("b", 1.0))]
    return policy, [*candidates(0.0), *made]


def test_what_each_draw_has_seen_further_down() -> None:
    """a = 1/2 gets the children c = 1/4 and one that failed: 0, and c gets the child d = 1.

    At c0: widen has seen 1/2 and 1; deepen 1/4, 0 and 1. Trees: a 1/2, 1/4, 0, 1; b 1.
    At a: widen 1/4 and 0; deepen 1. At c: widen 1; deepen nothing. The failed one leads nowhere.
    """
    policy, among = family()
    policy.tell(outcome(1, "a", c=0.25, failed=None))
    policy.tell(outcome(2, "c", d=1.0))
    among += [Candidate(id=i, program="x", score=s) for i, s in (("c", 0.25), ("d", 1.0))]
    at_root = exceeds(totals(0.5, 1.0), totals(0.25, 0.0, 1.0))
    to_a = (1 - at_root) * exceeds(totals(0.5, 0.25, 0.0, 1.0), totals(1.0))
    at_a = exceeds(totals(0.25, 0.0), totals(1.0))
    at_c = exceeds(totals(1.0), totals())
    shares = [
        at_root,
        to_a * at_a,
        1 - at_root - to_a,  # b
        to_a * (1 - at_a) * at_c,
        to_a * (1 - at_a) * (1 - at_c),
    ]
    assert p_value(counts(policy, among), shares) > 1e-4


def test_the_rule_says_whether_the_walk_went_down_as_far_as_it_could() -> None:
    policy, among = family()
    drawn = [policy.choose(among, u=0, key=key) for key in range(300)]
    rules = {(each.candidate.id, each.rule) for each in drawn}
    assert rules == {("c0", "widen"), ("a", "deepen"), ("b", "deepen")}
    only = [policy.choose(among[:1], u=0, key=key).rule for key in range(50)]
    assert set(only) == {"deepen"}  # its children are no candidates
    policy.tell(outcome(1, "a", failed=None))
    drawn = [policy.choose(among, u=0, key=key) for key in range(300)]
    assert {each.rule for each in drawn if each.candidate.id == "a"} == {"deepen"}


@pytest.mark.parametrize(("sign", "direction"), [(7, UP), (-1, DOWN), (-1e200, DOWN)])
def test_rewards_are_shares_of_the_span(sign: int, direction: Direction) -> None:
    (one, among), (other, turned) = family(), family(sign, direction)
    for key in range(300):
        chosen = one.choose(among, u=0, key=key).candidate
        assert other.choose(turned, u=0, key=key).candidate.id == chosen.id


def test_a_walk_begins_at_one_of_the_guests() -> None:
    """Two migrants without children: each tree has seen its own share, 0 and 1."""
    got = counts(new_policy("thompson", direction=UP), candidates(3.0, 4.0))
    better = exceeds(totals(1.0), totals(0.0))
    assert p_value(got, [1 - better, better]) > 1e-4
    assert new_policy("thompson", direction=UP).choose(
        candidates(3.0, 4.0), u=0, key=1
    ).candidate in candidates(3.0, 4.0)


def test_those_that_are_no_candidates_are_walked_through() -> None:
    policy, (root, _, b) = family()
    policy.tell(outcome(1, "a", c=0.75))
    c = Candidate(id="c", program="x", score=0.75)
    assert {policy.choose([c], u=0, key=k).candidate.id for k in range(100)} == {"c"}
    assert {policy.choose([root, c], u=0, key=k).candidate.id for k in range(300)} == {"c0", "c"}
    # a is no candidate: from b and c, the tree of a (1/2, 3/4) leads to c.
    got = Counter(policy.choose([b, c], u=0, key=k).candidate.id for k in range(4000))
    to_c = exceeds(totals(0.0, 0.5), totals(1.0))  # shares of the span from 1/2 to 1
    assert p_value([got["c"], got["b"]], [to_c, 1 - to_c]) > 1e-4


def test_another_childless_candidate_elsewhere_seldom_changes_the_walk() -> None:
    policy, among = family()
    migrant = Candidate(id="migrant", program="x", score=0.6)
    moved = sum(
        policy.choose([*among, migrant], u=0, key=key).candidate
        not in (migrant, policy.choose(among, u=0, key=key).candidate)
        for key in range(1000)
    )
    assert moved == 0
