"""Which worker has which islands: worked by hand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cluster.assignment import Load, better, taker


def load(left: Mapping[int, float], rate: float | None = None, node: str = "") -> Load:
    return Load(left=left, rate=rate, node=node)


def test_an_island_goes_where_it_ends_first() -> None:
    # With it they end after (30 + 20) / 1, (60 + 20) / 4 and (0 + 20) / 0.5 seconds.
    loads = [load({0: 30}, 1.0), load({1: 60}, 4.0), load({}, 0.5)]
    assert taker(loads, left=20) == 1


def test_a_worker_that_was_not_measured_is_an_average_one() -> None:
    # The first is at 2 a second and the third at 4, so the second counts as 3.
    loads = [load({0: 10}, 2.0), load({1: 10}), load({2: 20}, 4.0)]
    assert taker(loads, left=10) == 1


def test_a_worker_that_has_nothing_to_do_takes_an_island() -> None:
    assert better([load({0: 5, 1: 5}), load({})]) == (0, 0, 1)
    assert better([load({}), load({3: 4, 5: 4}), load({1: 4})]) == (3, 1, 0)


def test_of_many_islands_each_worker_gets_its_share() -> None:
    """One of six is a sixth of the time alone; what counts is what they would gain in the end."""
    at: list[dict[int, float]] = [dict.fromkeys(range(6), 1.0), {}, {}]
    counts = []
    while move := better([load(each) for each in at]):
        number, here, there = move
        at[there][number] = at[here].pop(number)
        counts.append([len(each) for each in at])
    assert counts == [[5, 1, 0], [4, 1, 1], [3, 2, 1], [2, 2, 2]]


def test_a_fast_worker_takes_the_island_of_a_slow_one() -> None:
    # They end after 40 and 10 seconds; with island 2 at the fast one after 0 and 20.
    assert better([load({2: 40}, 1.0), load({3: 40}, 4.0)]) == (2, 0, 1)


def test_a_move_that_gains_little_is_not_made() -> None:
    # They end after 30 and 20; after a move of 10 they would end after 20 and 30.
    assert better([load({0: 10, 1: 20}, 1.0), load({2: 20}, 1.0)]) is None
    # Batching alone makes the fuller one faster: each would end after 10.
    assert better([load({0: 10, 1: 10, 2: 10}, 3.0), load({3: 10}, 1.0)]) is None


def test_a_machine_with_the_kv_is_taken_where_that_costs_little() -> None:
    # With it they end after 10, 12 and 13 seconds; 10 is above 0.8 x 12 and below 0.8 x 13.
    loads = [load({}, 1.0, "a"), load({0: 2}, 1.0, "b"), load({1: 3}, 1.0, "c")]
    assert taker(loads, left=10, warm="b") == 1
    assert taker(loads, left=10, warm="c") == 0
    assert taker(loads, left=10, warm="gone") == taker(loads, left=10) == 0


def test_of_two_workers_of_a_warm_machine_the_first_to_end_is_taken() -> None:
    loads = [load({}, 1.0, "a"), load({0: 2}, 1.0, "b"), load({1: 1}, 1.0, "b")]
    assert taker(loads, left=10, warm="b") == 2


def test_workers_without_a_cache_are_all_alike() -> None:
    assert taker([load({}, 1.0), load({0: 1}, 1.0)], left=10, warm="") == 0


def test_a_move_stays_on_the_machine_where_that_costs_little() -> None:
    # The first ends after 40 seconds. With one island elsewhere it ends after 20, and so does the
    # other one, or after 22 and 26: 20 is above 0.8 x 22 and below 0.8 x 26.
    slow = load({0: 20, 1: 20}, 1.0, "a")
    assert better([slow, load({}, 1.0, "b"), load({2: 2}, 1.0, "a")]) == (0, 0, 2)
    assert better([slow, load({}, 1.0, "b"), load({2: 6}, 1.0, "a")]) == (0, 0, 1)


def test_a_move_on_the_machine_has_to_gain_as_much_as_any() -> None:
    # They end after 40 and 30; after a move after 20 and 50.
    assert better([load({0: 20, 1: 20}, 1.0, "a"), load({2: 30}, 1.0, "a")]) is None


@pytest.mark.parametrize("loads", [[], [load({0: 1})], [load({}), load({})]])
def test_where_nothing_can_move_nothing_does(loads: list[Load]) -> None:
    assert better(loads) is None


loads_of_any_kind = st.lists(
    st.tuples(st.lists(st.floats(1, 1e6), max_size=5), st.none() | st.floats(1e-3, 1e3)),
    min_size=1,
    max_size=6,
)


@given(loads_of_any_kind)
def test_moves_come_to_an_end(drawn: list[tuple[list[float], float | None]]) -> None:
    numbers = iter(range(100))
    at = [({next(numbers): each for each in left}, rate) for left, rate in drawn]
    for _ in range(200):
        move = better([load(left, rate) for left, rate in at])
        if move is None:
            return
        number, here, there = move
        at[there][0][number] = at[here][0].pop(number)
    raise AssertionError("islands are moved for ever")
