"""The bandit over islands, by hand."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from draws import candidates, outcome, p_value

from engine.core import Direction
from engine.search.parents import IslandBandit

UP, DOWN = Direction.MAXIMISE, Direction.MINIMISE


def bandit(islands: int = 2, direction: Direction = UP, score: float = 2.0) -> IslandBandit:
    """Return one whose islands have all been given an initial program."""
    made = IslandBandit(islands=islands, direction=direction)
    for island in range(islands):
        made.welcome(island, candidates(score)[0])
    return made


def test_the_bounds_by_hand() -> None:
    """Island 0: 3 of 2, then 3, then 5. Gains 1, 0, 2 over the best of all, 2, 3 and 3.

    r = 0.5; 0.45; 0.405 + 0.66667 = 1.07167. v = 1; 1.9; 2.71.
    Island 1: 2.5 of 2, its own best, over the best of all, 5: r = 0.1; then nothing: 0.09, 0.081.
    n = 3 each, so the bonus is 1.41 sqrt(ln 7 / 3) for both.
    """
    made = bandit()
    made.tell(0, outcome(0, "c0", a=3.0))
    made.tell(0, outcome(1, "c0", b=3.0, c=5.0))
    made.tell(1, outcome(2, "c0", d=2.5, e=None, f=2.4))
    bonus = 1.41 * math.sqrt(math.log(7) / 3)
    assert made.bounds() == pytest.approx([1.0716667 / 2.71 + bonus, 0.081 / 2.71 + bonus])
    assert made.choose([0, 1], key=5) == 0
    # One more for island 0, without a gain: r = 0.9645, v = 3.439, n = 4, N = 7.
    made.tell(0, outcome(3, "c0", g=0.0))
    assert made.bounds() == pytest.approx(
        [
            0.9645 / 3.439 + 1.41 * math.sqrt(math.log(8) / 4),
            0.081 / 2.71 + 1.41 * math.sqrt(math.log(8) / 3),
        ]
    )


def test_minimising_is_the_mirror_image() -> None:
    one, other = bandit(), bandit(direction=DOWN, score=-2.0)
    for sign, made in ((1, one), (-1, other)):
        made.tell(0, outcome(0, "c0", a=3.0 * sign, b=1.0 * sign, c=5.0 * sign))
        made.tell(1, outcome(1, "c0", d=2.5 * sign, e=None, f=2.4 * sign))
    assert one.bounds() == pytest.approx(other.bounds())


def test_an_old_breakthrough_is_forgotten() -> None:
    made = bandit()
    made.tell(0, outcome(0, "c0", a=100.0, b=None, c=None))
    made.tell(1, outcome(1, "c0", d=None, e=None, f=None))
    assert made.choose([0, 1], key=0) == 0
    first = made.bounds()[0] - made.bounds()[1]
    for i in range(2, 42, 2):
        made.tell(0, outcome(i, "c0", **{f"{i}": None}))
        made.tell(1, outcome(i + 1, "c0", **{f"{i + 1}": None}))
    assert 0 < made.bounds()[0] - made.bounds()[1] < first / 20


def test_a_guest_raises_what_is_to_be_beaten_and_earns_nothing() -> None:
    made = bandit()
    made.welcome(1, candidates(4.0)[0])
    made.tell(1, outcome(0, "c0", a=3.9, b=3.9, c=3.9))
    made.tell(0, outcome(1, "c0", d=3.0, e=None, f=None))
    bonus = 1.41 * math.sqrt(math.log(7) / 3)
    assert made.bounds() == pytest.approx([0.81 * 0.25 / 2.71 + bonus, bonus])


def test_each_island_has_three_children_first_in_no_order() -> None:
    made = bandit(islands=3)
    made.tell(1, outcome(0, "c0", a=9.0, b=9.5, c=10.0))
    chosen = Counter(made.choose([0, 1, 2], key=key) for key in range(2000))
    assert p_value([chosen[0], chosen[1], chosen[2]], [1, 0, 1]) > 1e-4
    assert made.choose([0, 1, 2], key=7) == made.choose([0, 1, 2], key=7)
    made.tell(0, outcome(1, "c0", d=None, e=None))
    assert {made.choose([0, 1, 2], key=key) for key in range(50)} == {0, 2}
    assert math.isinf(made.bounds()[2])
    made.tell(0, outcome(2, "c0", f=None))
    made.tell(2, outcome(3, "c0", g=None, h=None, i=None))
    assert {made.choose([0, 1, 2], key=key) for key in range(50)} == {1}


def test_it_chooses_among_those_that_may_call_alone() -> None:
    made = bandit(islands=3)
    for island, best in enumerate((3.0, 9.0, 5.0)):
        made.tell(island, outcome(island, "c0", **{f"{island}": best, f"{island}b": 0.0, "x": 0.0}))
    ordered = sorted(range(3), key=lambda island: -made.bounds()[island])
    assert ordered[0] == 1
    assert made.choose([0, 1, 2], key=3) == 1
    assert made.choose([0, 2], key=3) == ordered[1]
    assert made.choose([0], key=3) == 0
    with pytest.raises(ValueError, match="there is no island 3"):
        made.choose([0, 3], key=3)


def test_the_first_draws_are_alike_with_one_island_more_unless_that_is_drawn() -> None:
    made = bandit(islands=3)
    for key in range(200):
        with_all = made.choose([0, 1, 2], key=key)
        assert with_all in (2, made.choose([0, 1], key=key))


def test_iterations_without_a_child_are_failures_and_end_the_first_draws() -> None:
    made = bandit()
    for iteration in range(3):
        made.tell(0, outcome(iteration, "c0"))
    assert {made.choose([0, 1], key=key) for key in range(50)} == {1}
    made.tell(1, outcome(3, "c0", a=3.0, b=None, c=None))
    bonus = 1.41 * math.sqrt(math.log(7) / 3)
    assert made.bounds() == pytest.approx([bonus, 0.81 / 2 / 2.71 + bonus])


def test_iterations_of_an_island_come_in_order_and_those_of_others_between_them() -> None:
    made = bandit()
    made.tell(0, outcome(4, "c0", a=1.0))
    made.tell(1, outcome(2, "c0", b=1.0))
    with pytest.raises(ValueError, match="iteration 4 was told after iteration 4"):
        made.tell(0, outcome(4, "c0", c=1.0))
    with pytest.raises(ValueError, match="there is no island 2"):
        made.tell(2, outcome(5, "c0"))
    with pytest.raises(ValueError, match="there is no island -1"):
        made.welcome(-1, candidates(1.0)[0])


@pytest.mark.parametrize(
    "wrong",
    [
        {"islands": 0},
        {"decay": 1.0},
        {"exploration": float("nan")},
    ],
)
def test_parameters_out_of_their_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        IslandBandit(**{"islands": 1, "direction": UP, **wrong})
