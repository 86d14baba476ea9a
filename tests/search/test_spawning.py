"""When a further island is opened, by hand."""

from __future__ import annotations

import itertools

import pytest

from engine.core import Candidate, Direction
from engine.search.parents import Child, ParentOutcome
from engine.search.spawning import Spawning

UP, DOWN = Direction.MAXIMISE, Direction.MINIMISE
NUMBERS = itertools.count()


def spawning(
    *,
    most: int = 5,
    below: float = 0.25,
    every: int = 4,
    direction: Direction = UP,
    score: float = 2.0,
) -> Spawning:
    """Return a rule whose two islands were given an initial program."""
    made = Spawning(most=most, below=below, every=every, direction=direction)
    for island in range(2):
        made.welcome(island, scored(score))
    return made


def scored(score: float) -> Candidate:
    return Candidate(id="guest", program="x = 1", score=score)


def tell(rule: Spawning, island: int, *scores: float | None) -> None:
    """Tell an iteration with children of these scores; none of them was judged if there are none.

    The rule does not ask for the order of the iterations.
    """
    children = tuple(Child(id=f"{next(NUMBERS)}", score=score) for score in scores)
    rule.tell(island, ParentOutcome(iteration=0, parent="guest", children=children))


@pytest.mark.parametrize(("direction", "sign"), [(UP, 1), (DOWN, -1)])
def test_the_productivity_by_hand(direction: Direction, sign: int) -> None:
    rule = spawning(direction=direction, score=2.0 * sign)
    assert rule.productivity == 1  # the initial program, of which each island has a copy
    tell(rule, 0, 3.0 * sign, 2.5 * sign, None)  # 2.5 comes after 3
    assert rule.productivity == 2 / 4
    tell(rule, 1, 2.5 * sign, 2.5 * sign, 2.4 * sign)  # its own best, though not that of all
    assert rule.productivity == 3 / 7
    tell(rule, 0, None, 2.9 * sign, 3.5 * sign)
    assert rule.productivity == 4 / 10


def test_a_guest_has_to_be_beaten_and_is_no_child() -> None:
    rule = spawning()
    rule.welcome(1, scored(4.0))
    rule.welcome(1, scored(1.0))
    assert rule.productivity == 1
    tell(rule, 1, 3.0, 4.0)
    tell(rule, 0, 3.0)
    assert rule.productivity == 2 / 4


def test_an_iteration_without_a_judged_child_is_one_failure() -> None:
    rule = spawning()
    tell(rule, 0)
    assert rule.productivity == 1 / 2
    tell(rule, 0, None, None)
    assert rule.productivity == 1 / 4


def test_an_island_is_due_below_the_threshold_and_later_only_after_a_while() -> None:
    """theta = 1/4 and C = 4: due at (1 + b) / (1 + n) < 1/4, then every 4 children while it is."""
    rule = spawning()
    assert not rule.is_due(islands=2)
    tell(rule, 0, None, None, None)
    assert rule.productivity == 1 / 4 and not rule.is_due(islands=2)  # not below it
    tell(rule, 1, None)
    assert rule.is_due(islands=2) and rule.is_due(islands=4)
    assert not rule.is_due(islands=5)  # M
    rule.opened()
    assert not rule.is_due(islands=3)
    tell(rule, 0, None, None, None)
    assert not rule.is_due(islands=3)
    tell(rule, 2, 1.0)  # of an island that began with nothing: the first score is the best
    assert rule.productivity == 2 / 9 and rule.is_due(islands=3)
    rule.opened()
    tell(rule, 0, 3.0, 4.0, 5.0, None)  # no longer unproductive: 5 of 13
    assert not rule.is_due(islands=4)
    tell(rule, 1, *[None] * 8)  # 5 of 21
    assert rule.is_due(islands=4)


def test_with_the_numbers_of_the_source() -> None:
    """1 / (1 + n) < 0.015 from n = 66 on; further ones follow after 30 children each."""
    rule = spawning(below=0.015, every=30)
    opened, islands = [], 2
    for judged in range(1, 200):
        tell(rule, judged % islands, None)
        if rule.is_due(islands=islands):
            rule.opened()
            islands += 1
            opened.append(judged)
    assert opened == [66, 96, 126]


@pytest.mark.parametrize(
    "wrong", [{"below": 0.0}, {"below": 1.5}, {"below": float("nan")}, {"every": 0}]
)
def test_parameters_out_of_their_range_are_refused(wrong: dict[str, float]) -> None:
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name} is .*; it must be"):
        Spawning(**{"most": 5, "below": 0.5, "every": 1, "direction": UP, **wrong})
