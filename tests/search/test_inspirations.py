"""Programs that a prompt shows beside the parent: the best of an archive, and others by chance."""

from __future__ import annotations

from collections import Counter

from engine.core import Candidate, Direction
from engine.search.inspirations.archive import ArchiveSettings
from engine.search.inspirations.parents import ParentsSettings
from engine.search.roster import Roster

ISLAND = Roster(
    Candidate(id=str(number), program="x" * (number + 1), score=float(number), iteration=number)
    for number in range(10)
)


def worst(candidates: Roster, key: int) -> Candidate:
    """Draw what no policy of parents would."""
    return candidates[0]


def shown(key: int, *, size: int = 6, best: int = 2, others: int = 2, but: str = "9") -> list[str]:
    """Return the ids of what is shown of programs whose scores are 0 to 9."""
    settings = ArchiveSettings(policy="archive", size=size, best=best, others=others)
    policy = settings.make(direction=Direction.MAXIMISE)
    return [each.id for each in policy.choose(ISLAND, but=[but, None], key=key, draw=worst)]


def test_the_best_come_first_without_the_parent_and_others_are_of_the_archive() -> None:
    counted: Counter[str] = Counter()
    for key in range(300):
        found = shown(key)
        assert found[:2] == ["8", "7"]
        assert len(set(found)) == 4
        counted.update(found[2:])
        assert found == shown(key)
    assert set(counted) == {"6", "5", "4"}  # the archive holds 9 to 4
    assert all(150 < count < 250 for count in counted.values())  # each in two of three


def test_there_may_be_fewer() -> None:
    assert shown(1, best=0, others=0) == []
    assert sorted(shown(1, size=2, best=1, others=5, but="8")) == ["9"]
    assert len(shown(1, size=99, best=99, others=1)) == 9


def test_the_best_of_a_minimisation_are_the_smallest() -> None:
    policy = ArchiveSettings(policy="archive", best=2, others=0).make(direction=Direction.MINIMISE)
    assert [each.id for each in policy.choose(ISLAND, but=[], key=0, draw=worst)] == ["0", "1"]


def test_programs_are_drawn_as_parents_are_none_twice_and_not_the_parent() -> None:
    keys: list[int] = []

    def best(candidates: Roster, key: int) -> Candidate:
        keys.append(key)
        return candidates[len(candidates) - 1]

    policy = ParentsSettings(policy="parents", count=3).make(direction=Direction.MAXIMISE)
    found = policy.choose(ISLAND, but=["8", None], key=7, draw=best)
    assert [each.id for each in found] == ["9", "7", "6"]
    assert len(set(keys)) == 3
    few = policy.choose(Roster(ISLAND[place] for place in (1, 2)), but=["2"], key=7, draw=best)
    assert [each.id for each in few] == ["1"]
    assert keys[3] == keys[0]  # the key of a call decides all draws
