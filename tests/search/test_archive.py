"""The archive: who keeps which cell, whatever the order in which it is told."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from engine.core import Candidate, Cell, Direction, Feature
from engine.search.archive import Archive

UP, DOWN = Direction.MAXIMISE, Direction.MINIMISE
FEATURES = (
    Feature(name="mass", low=0, high=40, bins=4),
    Feature(name="snr", low=-1, high=1, bins=2),
)


def cell(**values: float) -> Cell | None:
    """Return the cell of a program with these features, all of them or none."""
    return tuple(each.bin(values[each.name]) for each in FEATURES) if values else None


def archive(direction: Direction = UP) -> Archive:
    return Archive(direction=direction)


def tell(
    into: Archive, name: str, score: float, *, program: str = "x = 1", at: int = 0, **values: float
) -> bool:
    """Tell a candidate; return whether it keeps its cell.

    `improves` says so of one whose score is better than that of the elite of a full cell.
    """
    candidate = Candidate(id=name, program=program, score=score, iteration=at, cell=cell(**values))
    before = [*into.elites]
    elite = next((each for each in before if each.cell == candidate.cell), None)
    improves = into.improves(candidate)
    assert [*into.elites] == before
    into.tell(candidate)
    keeps = [*into.elites] != before
    assert improves == (keeps and elite is not None and elite.score != score)
    return keeps


def test_cells_are_filled_taken_over_and_kept() -> None:
    made = archive()
    assert [*made.elites] == []
    assert tell(made, "a", 1.0, mass=5, snr=0.5)
    assert not tell(made, "b", 0.5, mass=9, snr=0.9)
    assert tell(made, "c", 0.1, mass=11, snr=0.5)
    assert tell(made, "d", 2.0, mass=9.9, snr=7.0)
    assert [elite.id for elite in made.elites] == ["c", "d"]


def test_smaller_scores_are_better_where_they_are_minimised() -> None:
    made = archive(DOWN)
    tell(made, "a", 1.0, mass=5, snr=0.5)
    assert tell(made, "b", -3.0, mass=5, snr=0.5)
    assert not tell(made, "c", 0.0, mass=5, snr=0.5)


def test_of_equal_ones_the_shorter_and_then_the_first_by_place_keeps_the_cell() -> None:
    made = archive()
    tell(made, "late", 1.0, at=7, mass=5, snr=0.5)
    assert not tell(made, "later", 1.0, at=8, mass=5, snr=0.5)
    assert tell(made, "early", 1.0, at=3, mass=5, snr=0.5)
    longer = tell(made, "longer", 1.0, at=0, program="x = 10", mass=5, snr=0.5)
    assert not longer
    shorter = tell(made, "short", 1.0, at=9, program="x=1", mass=5, snr=0.5)
    assert shorter
    assert [elite.id for elite in made.elites] == ["short"]


def test_telling_again_changes_nothing() -> None:
    made = archive()
    tell(made, "a", 1.0, mass=5, snr=0.5)
    assert not tell(made, "a", 1.0, mass=5, snr=0.5)


def test_one_without_a_cell_is_not_kept() -> None:
    made = archive()
    assert not tell(made, "a", 1.0)
    assert [*made.elites] == []


def test_without_features_there_is_one_cell_for_the_best() -> None:
    made = Archive(direction=UP)
    scores = {"a": 1.0, "b": 2.0, "c": 1.5}
    candidates = [Candidate(id=n, program="x", score=s, cell=()) for n, s in scores.items()]
    for each in candidates:
        made.tell(each)
    assert [elite.id for elite in made.elites] == ["b"]


programs = st.tuples(
    st.sampled_from([0.0, 0.5, 1.0, -1.0]),
    st.sampled_from(["x = 1", "y = 1", "x = 10"]),
    st.integers(0, 3),
    st.floats(-5, 50),
    st.floats(-2, 2),
)


@given(st.lists(programs, max_size=12), st.sampled_from(Direction), st.randoms())
def test_what_it_holds_does_not_depend_on_the_order(
    told: list[tuple[float, str, int, float, float]], direction: Direction, rng: object
) -> None:
    numbered = list(enumerate(told))
    shuffled = sorted(numbered, key=lambda _: rng.random())  # type: ignore[attr-defined]
    one, other = archive(direction), archive(direction)
    for into, order in ((one, numbered), (other, shuffled)):
        for number, (score, program, at, mass, snr) in order:
            tell(into, f"c{number}", score, program=program, at=at, mass=mass, snr=snr)
    assert [*one.elites] == [*other.elites]
    own = {f"c{number}": cell(mass=each[3], snr=each[4]) for number, each in numbered}
    assert Counter(own[elite.id] for elite in one.elites) == Counter(set(own.values()))
    for elite in one.elites:
        assert all(
            not direction.better(score, elite.score)
            for number, (score, *_) in numbered
            if own[f"c{number}"] == own[elite.id]
        )


def test_elites_stand_in_the_order_of_their_places() -> None:
    made = archive()
    for at, mass in ((5, 1), (2, 11), (9, 21), (0, 31)):
        tell(made, f"c{at}", 1.0, at=at, mass=mass, snr=0.0)
    assert [each.id for each in made.elites] == ["c0", "c2", "c5", "c9"]
