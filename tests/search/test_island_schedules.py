"""AdaEvolve's bandit over islands and its rule for further ones, by hand."""

from __future__ import annotations

import itertools
import math

import pytest

from engine.core import Candidate, Direction
from engine.search.parents import Offspring, ParentOutcome
from engine.search.schedules.adaevolve import AdaEvolveSchedule, AdaEvolveScheduleSettings

UP, DOWN = Direction.MAXIMISE, Direction.MINIMISE
NUMBERS = itertools.count()


def schedule(
    *, direction: Direction = UP, initial: float = 2.0, **given: float
) -> AdaEvolveSchedule:
    """Return the schedule of two islands that were given an initial program."""
    settings = AdaEvolveScheduleSettings(policy="adaevolve", **given)  # type: ignore[arg-type]
    made = settings.make(direction=direction)
    for island in range(2):
        made.receive(island, Candidate(id="initial", program="x = 1", score=initial))
    return made


def tell(made: AdaEvolveSchedule, island: int, *scores: float | None) -> None:
    children = tuple(Offspring(id=f"{next(NUMBERS)}", score=score) for score in scores)
    made.tell(island, ParentOutcome(iteration=0, parent="initial", children=children))


@pytest.mark.parametrize(("direction", "sign"), [(UP, 1), (DOWN, -1)])
def test_the_bounds_by_hand(direction: Direction, sign: int) -> None:
    """Island 0: 3 and 2.5 and none after 2; island 1: 2.2, 2 and 4.

    Of island 0 delta is 1 / 2, 0, 0, so r = 0.5 * 0.81 and v = 1 + 0.9 + 0.81; of island 1 it is
    0.2 / 3 (the best of all is 3), 0, and 1.8 / 3, so r = 0.81 * 0.2 / 3 + 0.6.
    """
    made = schedule(direction=direction, initial=2.0 * sign)
    tell(made, 0, 3.0 * sign, 2.5 * sign, None)
    assert made.allowed([0, 1], islands=2) == (1,)  # it had no three children
    tell(made, 1, 2.2 * sign, 2.0 * sign)
    assert made.allowed([0, 1], islands=2) == (1,)
    tell(made, 1, 4.0 * sign)
    bonus = 1.41 * math.sqrt(math.log(7) / 3)
    assert made.bound(0) == pytest.approx(0.405 / 2.71 + bonus)
    assert made.bound(1) == pytest.approx((0.81 * 0.2 / 3 + 0.6) / 2.71 + bonus)
    assert made.allowed([0, 1], islands=2) == (1,)
    assert made.allowed([0], islands=2) == ()  # a call is under way
    tell(made, 1, *[None] * 8)  # the reward is forgotten, the visits are not
    assert made.bound(0) > made.bound(1) and made.allowed([0, 1], islands=2) == (0,)


def test_what_an_island_is_sent_is_to_be_beaten_and_earns_nothing() -> None:
    made = schedule()
    made.receive(1, Candidate(id="migrant", program="x = 1", score=4.0))
    tell(made, 1, 3.0, 4.0)
    assert made.productivity == 1 / 3
    tell(made, 1, 5.0)
    assert made.productivity == 2 / 4


def test_an_iteration_without_a_child_is_one_that_improved_nothing() -> None:
    made = schedule()
    tell(made, 0)
    assert made.productivity == 1 / 2
    for _ in range(3):
        tell(made, 1)
    assert made.allowed([0, 1], islands=2) == (0,)


def test_islands_are_opened_with_the_numbers_of_the_source() -> None:
    """1 / (1 + n) < 0.015 from n = 66 on; further ones follow after 30 children each."""
    made, islands, opened = schedule(), 2, []
    for judged in range(1, 300):
        tell(made, judged % islands, None)
        if made.is_due(islands=islands):
            made.opened()
            islands += 1
            opened.append(judged)
    assert (opened, islands) == ([66, 96, 126], 5)


def test_islands_that_improve_open_none() -> None:
    made = schedule(below=0.25, every=1)
    tell(made, 0, None, None, None)
    assert not made.is_due(islands=2)  # 1 / 4 is not below
    tell(made, 1, None)
    assert made.is_due(islands=2)
    tell(made, 0, 3.0, 4.0)
    assert not made.is_due(islands=2)
