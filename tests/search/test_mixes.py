"""The mix of operators: the fixed one, and the bandit's formula and choices by hand."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.search.mixes import MIXES, Mix
from engine.search.mixes.kl_ucb import KlUcb, upper_bound

EVEN = {"a": 1.0, "b": 1.0, "c": 1.0}


def told(rewards: dict[str, list[float]]) -> KlUcb:
    """Return a bandit whose operators have earned so much in each of their calls."""
    mix = KlUcb(EVEN)
    calls = [(name, reward) for name, earned in rewards.items() for reward in earned]
    for iteration, (name, reward) in enumerate(calls):
        mix.begin(iteration, name)
        mix.tell(iteration, share=reward)
    return mix


def chosen(mix: Mix, names: str, begun: str = "", *, keys: int = 60) -> set[str]:
    return {mix.choose([*names], key=key, begun=[*begun]) for key in range(keys)}


# The fixed mix.


def test_a_fixed_mix_draws_by_weight_and_learns_nothing() -> None:
    mix = MIXES.read({"policy": "fixed"}).make(weights={"a": 1.0, "b": 2.0, "c": 1e-300})
    draws = [mix.choose(["a", "b", "c"], key=key) for key in range(1500)]
    assert 900 < Counter(draws)["b"] < 1100  # 2 of 3; five standard deviations are 91
    assert set(draws) == {"a", "b"}
    for iteration in range(50):
        mix.begin(iteration, "a")
        mix.tell(iteration, share=1.0)
    assert [mix.choose(["a", "b", "c"], key=key) for key in range(1500)] == draws


def test_an_operator_that_cannot_be_used_changes_only_the_draws_that_it_wins() -> None:
    mix = MIXES.read({"policy": "fixed"}).make(weights={"a": 1.0, "b": 2.0, "c": 1.0})
    for key in range(300):
        assert mix.choose(["a", "b", "c"], key=key) in ("b", mix.choose(["a", "c"], key=key))


# The bound.


@pytest.mark.parametrize(
    ("mean", "calls", "n", "bound"),
    [
        (0.0, 1, 2, 1 / 2),  # -ln(1 - q) = ln 2
        (0.0, 2, 4, 1 / 2),  # -2 ln(1 - q) = ln 4
        (0.0, 3, 1000, 9 / 10),
        (0.5, 2, 4, (1 + math.sqrt(3 / 4)) / 2),  # -ln(4 q (1 - q)) = ln 4
        (0.5, 4, 9, (1 + math.sqrt(2 / 3)) / 2),  # -2 ln(4 q (1 - q)) = ln 9
        (0.25, 7, 1, 0.25),
        (1.0, 3, 50, 1.0),
    ],
)
def test_the_bound_by_hand(mean: float, calls: int, n: int, bound: float) -> None:
    assert upper_bound(mean, calls=calls, level=math.log(n)) == pytest.approx(bound, abs=1e-7)


@given(st.floats(0, 1), st.integers(1, 1000), st.floats(0, 20))
def test_the_bound_lies_between_the_mean_and_ucb1s_half_as_wide(
    mean: float, calls: int, level: float
) -> None:
    """Pinsker: kl(p, q) >= 2 (p - q)^2, so it is at most p + sqrt(ln n / 2 N)."""
    bound = upper_bound(mean, calls=calls, level=level)
    assert mean <= bound <= min(1.0, mean + math.sqrt(level / (2 * calls))) + 1e-7


# The bandit.


def test_each_operator_is_used_once_before_they_are_compared() -> None:
    mix = KlUcb(EVEN)
    assert chosen(mix, "abc") == {"a", "b", "c"}
    mix.begin(0, "b")
    mix.tell(0, share=1.0)
    assert chosen(mix, "abc") == {"a", "c"}
    assert chosen(mix, "abc", begun="a") == {"c"}
    assert chosen(mix, "bc", begun="c") == {"b"}  # of those that can be used


def test_the_weights_say_who_is_probably_first() -> None:
    mix = KlUcb({"a": 1.0, "b": 3.0})
    first = Counter(mix.choose(["a", "b"], key=key) for key in range(1000))
    assert 680 < first["b"] < 820  # 3 of 4; five standard deviations are 68


def test_the_largest_bound_is_chosen_by_hand() -> None:
    mix = told({"a": [0.0, 0.0], "b": [0.5, 0.5]})  # of n = 4: 0.5 and 0.933
    assert chosen(mix, "ab") == {"b"}
    assert chosen(mix, "a") == {"a"}
    # n = 16, a: 1 - 16^(-1/2) = 0.75; b, 14 calls with mean 1/28: 14 kl(1/28, q) = ln 16, and
    # kl(1/28, 0.75) = 1.2 already exceeds ln 16 / 14 = 0.198.
    assert chosen(told({"a": [0.0, 0.0], "b": [0.5] + [0.0] * 13}), "ab") == {"a"}


def test_equal_bounds_are_a_draw() -> None:
    assert chosen(told({"a": [0.0, 0.5], "b": [0.5, 0.0]}), "ab") == {"a", "b"}


def test_a_call_counts_from_its_beginning_without_a_reward() -> None:
    """So the operator that is chosen before its verdicts are in is the same, if they bring none."""
    mix = told({"a": [0.25, 0.0], "b": [0.25]})
    assert chosen(mix, "ab") == {"b"}
    mix.begin(9, "b")
    under_way = chosen(mix, "ab")
    assert under_way == {"a", "b"}  # two calls and 0.25 each
    mix.tell(9, share=0.0)
    assert chosen(mix, "ab") == under_way
    assert chosen(told({"a": [0.25, 0.0], "b": [0.25]}), "ab", begun="b") == under_way


def test_what_seldom_improves_is_told_from_what_never_does() -> None:
    """One reward of 1/8 in every fourth call, against none, in 400 calls."""
    mix, used = KlUcb({"a": 1.0, "b": 1.0}), Counter[str]()
    for iteration in range(400):
        name = mix.choose(["a", "b"], key=iteration)
        mix.begin(iteration, name)
        mix.tell(iteration, share=0.125 if name == "b" and used["b"] % 4 == 0 else 0.0)
        used[name] += 1
    assert used["b"] > 1.5 * used["a"] > 20  # and goes on trying the other
