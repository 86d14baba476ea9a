"""The predictor: who is believed, by hand, and what scoring every expert teaches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.speculation.predictor import MEMORY, Expert, Predictor

DRAW, BEST, AGAIN = Expert


def guesses(names: str) -> dict[Expert, str]:
    """Return what draw, best and again name: one letter each."""
    return dict(zip(Expert, names, strict=True))


def test_a_sequence_by_hand() -> None:
    """With memory m the hits are, after each step,

    1. draw a, best b, again c; b came:  0, 1, 0: best is believed;
    2. all wrong:                        0, m, 0: still;
    3. draw a, best b, again a; a came:  1, m^2, 1: draw before again, and both before best;
    4. draw a, best b, again c; c came:  m, m^3, 1 + m: again.
    """
    made = Predictor()
    assert made.believed is DRAW  # all are equal
    steps = [("abc", "b", BEST), ("abc", "x", BEST), ("aba", "a", DRAW), ("abc", "c", AGAIN)]
    followed = []
    for iteration, (names, came, believed) in enumerate(steps):
        followed.append(made.guess(iteration, guesses(names)))
        made.learn(iteration, parent=came)
        assert made.believed is believed
    assert followed == ["a", "b", "b", "a"]


def test_what_was_right_long_ago_counts_less() -> None:
    made = Predictor()
    for iteration in range(40):
        made.guess(iteration, guesses("abc"))
        made.learn(iteration, parent="b" if iteration < 20 else "c")
        if iteration == 20:
            assert made.believed is BEST  # of which 20 hits are not so old
    assert made.believed is AGAIN


def test_guessing_again_takes_the_place_of_the_guesses_before() -> None:
    made = Predictor()
    made.guess(3, guesses("abc"))
    assert made.guess(3, guesses("bca")) == "b"
    made.learn(3, parent="c")
    assert made.believed is BEST


@pytest.mark.parametrize("iteration", [0, 1, 2, 3])
def test_an_iteration_is_learned_from_once_and_only_if_it_was_guessed(iteration: int) -> None:
    made = Predictor()
    made.learn(0, parent="b")
    assert made.believed is DRAW
    made.guess(1, guesses("abc"))
    made.guess(2, guesses("abc"))
    made.learn(2, parent="b")
    assert made.believed is BEST
    for _ in range(3):
        made.learn(iteration, parent="c")  # 1 is over and was given up: nothing waits for it
    assert made.believed is BEST


@given(st.lists(st.tuples(st.text("abc", min_size=3, max_size=3), st.sampled_from("abc"))))
def test_the_believed_one_has_the_largest_discounted_mean(steps: list[tuple[str, str]]) -> None:
    made = Predictor()
    for iteration, (names, came) in enumerate(steps):
        made.guess(iteration, guesses(names))
        made.learn(iteration, parent=came)
    ages = range(len(steps))[::-1]
    trials = sum(MEMORY**age for age in ages)
    means = {
        expert: (1 + sum(
            MEMORY**age
            for age, (names, came) in zip(ages, steps, strict=True)
            if guesses(names)[expert] == came
        )) / (trials + 2)
        for expert in Expert
    }  # fmt: skip
    assert means[made.believed] == pytest.approx(max(means.values()))
