"""An island's elites: who may be a parent now, and how many children replaced an elite, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core import Candidate, Direction, Feature
from engine.search.archive import Elites

# Cells: [0, 1), [1, 2), [2, 3) and [3, 4].
FEATURES = (Feature(name="lag", low=0, high=4, bins=4),)


def made(name: str, score: float, lag: float | None, iteration: int, index: int) -> Candidate:
    cell = None if lag is None else (FEATURES[0].bin(lag),)
    return Candidate(id=name, program="x", score=score, iteration=iteration, index=index, cell=cell)


class Island:
    """Elites, and how they are told."""

    def __init__(self, *, direction: Direction = Direction.MAXIMISE) -> None:
        self.elites = Elites(direction=direction)

    def receive(self, name: str, score: float, lag: float, *, iteration: int = -1) -> None:
        self.elites.receive(made(name, score, lag, iteration, 0))

    def tell(self, name: str, score: float, lag: float | None) -> None:
        iteration, index = map(int, name.split("."))
        self.elites.tell(made(name, score, lag, iteration, index))

    @property
    def names(self) -> list[str]:
        return [each.id for each in self.elites.candidates]


@pytest.fixture
def island() -> Island:
    island = Island()
    island.receive("initial", 1.0, 0.5)
    return island


def test_a_parent_is_the_best_of_its_cell_as_soon_as_its_verdict_is_in(island: Island) -> None:
    island.tell("0.0", 0.2, 1.5)
    assert island.names == ["initial", "0.0"]
    island.tell("0.1", 0.3, 1.2)
    assert island.names == ["initial", "0.1"]
    island.tell("0.2", 2.0, 0.9)
    assert island.names == ["0.1", "0.2"]


def test_each_child_is_compared_with_the_archive_before_the_iteration(island: Island) -> None:
    island.tell("0.0", 2.0, 0.1)  # better than the initial program
    island.tell("0.1", 1.5, 0.2)  # so is this one, though its sibling has the cell now
    island.tell("0.2", 0.5, 0.3)  # this is not
    island.tell("0.3", 0.1, 3.5)  # nothing is replaced in an empty cell
    island.tell("0.4", 9.0, None)  # no cell
    assert island.elites.replaced(0) == 2
    island.elites.finish(0)
    island.tell("1.0", 1.7, 0.1)  # better than the initial program, worse than 0.0
    island.tell("1.1", 0.2, 3.9)  # better than 0.3
    assert island.elites.replaced(1) == 1
    assert island.elites.replaced(0) == 0  # it is over


def test_an_equal_one_that_is_shorter_takes_the_cell_and_replaces_nothing() -> None:
    elites = Elites(direction=Direction.MAXIMISE)
    for name, program, iteration in (("initial", "x = 1", -1), ("0.0", "x=1", 0)):
        elites.tell(Candidate(id=name, program=program, score=1.0, iteration=iteration, cell=(0,)))
        elites.finish(-1)
    assert [each.id for each in elites.candidates] == ["0.0"]
    assert elites.replaced(0) == 0


def test_a_guest_is_a_parent_and_counts_for_what_is_compared_at_once(island: Island) -> None:
    island.tell("4.0", 0.5, 2.5)
    island.tell("4.1", 0.9, 2.5)
    assert island.elites.replaced(4) == 0  # the cell was empty before the iteration
    island.receive("3.0", 0.7, 2.1, iteration=3)
    assert island.names == ["initial", "4.1"]
    assert island.elites.replaced(4) == 1
    island.receive("3.1", 0.95, 2.2, iteration=3)
    assert (island.names, island.elites.replaced(4)) == (["initial", "3.1"], 0)


def test_smaller_scores_take_over_where_they_are_minimised() -> None:
    island = Island(direction=Direction.MINIMISE)
    island.receive("initial", 1.0, 0.5)
    island.tell("0.0", 2.0, 0.1)
    island.tell("0.1", 0.5, 0.1)
    assert (island.names, island.elites.replaced(0)) == (["0.1"], 1)


told = st.lists(st.tuples(st.integers(0, 3), st.floats(0, 4)), min_size=1, max_size=12)


@given(told, st.randoms())
def test_siblings_may_be_told_in_any_order(children: list[tuple[int, float]], rng: object) -> None:
    one, other = Island(), Island()
    named = [(f"0.{i}", float(score), lag) for i, (score, lag) in enumerate(children)]
    for each in named:
        one.tell(*each)
    rng.shuffle(named)  # type: ignore[attr-defined]
    for each in named:
        other.tell(*each)
    assert one.names == other.names
    assert one.elites.replaced(0) == other.elites.replaced(0) == 0
