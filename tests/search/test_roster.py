"""A roster: its order, its arrays, and its best, against plain lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core import Candidate, Direction
from engine.search.race import hashes_of
from engine.search.roster import Roster, best_few


def placed(iteration: int, index: int, score: float, length: int) -> Candidate:
    name = f"{iteration}.{index}"
    return Candidate(id=name, program="x" * length, score=score, iteration=iteration, index=index)


@st.composite
def some(draw: st.DrawFn, least: int = 0) -> list[Candidate]:
    """Return candidates with places of their own, in any order."""
    places = st.tuples(st.integers(0, 12), st.integers(0, 12))
    chosen = draw(st.lists(places, unique=True, min_size=least, max_size=150))
    scores = st.sampled_from([-1.0, 0.0, 0.5, 2.0])
    return [placed(*place, draw(scores), draw(st.integers(1, 3))) for place in chosen]


@given(some())
def test_candidates_and_their_arrays_stand_in_the_order_of_their_places(
    each: list[Candidate],
) -> None:
    roster, expected = Roster(each), sorted(each, key=lambda one: one.place)
    assert [*roster] == expected == [roster[place] for place in range(len(roster))]
    assert roster.scores.tolist() == [candidate.score for candidate in expected]
    assert np.array_equal(roster.hashes, hashes_of([candidate.id for candidate in expected]))


@given(some(least=1), st.sampled_from(Direction))
def test_the_best_is_the_shortest_of_equal_ones_and_of_those_the_first(
    each: list[Candidate], direction: Direction
) -> None:
    sign = 1 if direction is Direction.MINIMISE else -1
    best = min(each, key=lambda one: (sign * one.score, len(one.program), one.place))
    assert Roster(each).best(direction) == best


@given(some(), st.integers(0, 160), st.sampled_from(Direction))
def test_the_first_few_are_the_shortest_of_equal_ones_and_of_those_the_first(
    each: list[Candidate], most: int, direction: Direction
) -> None:
    sign = 1 if direction is Direction.MINIMISE else -1
    expected = sorted(each, key=lambda one: (sign * one.score, len(one.program), one.place))
    roster = Roster(each)
    assert roster.first(most, direction) == expected[:most]
    assert best_few(roster, most, direction) == best_few([*roster], most, direction)


@pytest.mark.parametrize("direction", Direction)
def test_of_equal_ones_at_the_end_of_the_first_few_the_shorter_is_taken(
    direction: Direction,
) -> None:
    longer, shorter = placed(0, 0, 1.0, 3), placed(0, 1, 1.0, 1)
    assert Roster([longer, shorter]).first(1, direction) == [shorter]


@given(some(least=1), st.data())
def test_without_one_of_them_it_is_the_roster_of_the_others(
    each: list[Candidate], data: st.DataObject
) -> None:
    one = data.draw(st.sampled_from(each))
    whole, others = Roster(each), Roster([other for other in each if other != one])
    rest = whole.without(one.id)
    assert [*rest] == [*others] and len(whole) == len(each)
    assert rest.scores.tolist() == others.scores.tolist()
    assert np.array_equal(rest.hashes, others.hashes)
    rest.add(one)
    assert [*rest] == [*whole]
    assert whole.without("nobody") is whole


@pytest.mark.parametrize(("iteration", "names"), [(2, ["2.0", "2.9", "2.10"]), (3, [])])
def test_those_of_an_iteration(iteration: int, names: list[str]) -> None:
    roster = Roster(placed(*place, 0.0, 1) for place in ((2, 10), (10, 0), (2, 9), (0, 0), (2, 0)))
    assert [each.id for each in roster.of_iteration(iteration)] == names
