"""Copy-and-mix against counts worked by hand from TurboEvolve's section 3.3."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from engine.core import Candidate, Direction
from engine.embedding import Vectors
from engine.pool.seeding import allocate

Islands = list[list[str]]


def heaps(*scores: list[float]) -> tuple[list[Candidate], Vectors]:
    """Return a cluster of programs for each list of scores, named a1, a2, ..., b1, ... ."""
    candidates, vectors = [], []
    for place, heap in enumerate(scores):
        for number, score in enumerate(heap, start=1):
            name = f"{'abcdefgh'[place]}{number}"
            candidates.append(Candidate(id=name, program=name, score=score))
            vectors.append([100.0 * place, number])
    return candidates, np.array(vectors, dtype=np.float32).reshape(-1, 2)


def islands(
    pool: tuple[list[Candidate], Vectors],
    *,
    count: int,
    mixing: float,
    elites: float,
    direction: Direction = Direction.MAXIMISE,
    seed: int = 0,
    assignment: str = "kmeans",
) -> Islands:
    found = allocate(
        *pool,
        islands=count,
        assignment=assignment,
        mixing=mixing,
        elites=elites,
        direction=direction,
        seed=seed,
    )
    return [[each.id for each in island] for island in found]


A = [10.0, 9, 8, 7, 6, 5, 4, 3, 2, 1]
B = [20.0, 19, 18, 17]


def test_programs_dealt_out_at_random_go_to_islands_of_equal_size_whatever_they_are() -> None:
    homes: Counter[tuple[str, int]] = Counter()
    for seed in range(200):
        found = islands(
            heaps(A, B), count=4, mixing=0.0, elites=0.2, seed=seed, assignment="random"
        )
        assert sorted(map(len, found)) == [3, 3, 4, 4]
        names = [name for island in found for name in island]
        assert len(set(names)) == len(names) == 14  # each once
        homes.update((name, number) for number, own in enumerate(found) for name in own)
    assert len(homes) == 14 * 4  # each program has been everywhere
    again = [
        islands(heaps(A, B), count=4, mixing=0.3, elites=0.2, seed=5, assignment="random")
        for _ in range(2)
    ]
    assert again[0] == again[1]
    # Mixing takes place among the groups as among clusters: no size changes.
    assert sorted(map(len, again[0])) == [3, 3, 4, 4]
    assert islands(heaps([1.0]), count=3, mixing=0.0, elites=0, assignment="random") == 3 * [["a1"]]


def test_hand_worked() -> None:
    """|A| = 10, |B| = 4, d = 0.3, rho = 0.2.

    P: ceil(3) = 3 of A, ceil(1.2) = 2 of B. r_A = floor(3) = 3, but P without A has 2 programs, so
    2 are exchanged. r_B = floor(1.2) = 1 of the 3 from A. Elites: ceil(2) = 2 and ceil(0.8) = 1.
    """
    drawn: Counter[str] = Counter()
    for seed in range(150):
        a, b = islands(heaps(A, B), count=2, mixing=0.3, elites=0.2, seed=seed)
        assert a == ["b1", "b2", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8"]
        assert b[:3] == ["b1", "b2", "b3"]
        (guest,) = b[3:]
        drawn[guest] += 1
    assert sorted(drawn) == ["a1", "a2", "a3"]  # the top 3, and no other
    assert all(abs(count - 50) < 4 * math.sqrt(150 * 2 / 9) for count in drawn.values())


def test_the_elites_stay_and_the_bottom_goes() -> None:
    """|A| = |B| = 4, d = 1: P is all, r = 4; rho = 0.5 protects 2, so that 2 are exchanged."""
    a, b = islands(heaps([4.0, 3, 2, 1], B), count=2, mixing=1, elites=0.5)
    assert [each for each in a if each[0] == "a"] == ["a1", "a2"]
    assert [each for each in b if each[0] == "b"] == ["b1", "b2"]
    assert len(set(a)) == len(set(b)) == 4
    # ceil(0.51 * 4) = 3: one is exchanged; ceil(1 * 4): none; ceil(0 * 4): all four.
    for elites, guests in ((0.51, 1), (1, 0), (0, 4)):
        a, _ = islands(heaps([4.0, 3, 2, 1], B), count=2, mixing=1, elites=elites)
        assert sum(each[0] == "b" for each in a) == guests


@pytest.mark.parametrize(
    ("mixing", "copied", "exchanged"),
    [
        (0.0, 0, 0),
        (0.01, 1, 0),  # ceil(0.04) and floor(0.04)
        (0.25, 1, 1),  # 1 exactly
        (0.26, 2, 1),
        (0.5, 2, 2),
        (0.75, 3, 3),
        (0.99, 4, 3),
        (1.0, 4, 4),
    ],
)
def test_counts_are_rounded_as_the_paper_does(mixing: float, copied: int, exchanged: int) -> None:
    """Two clusters of 4, no elites: ceil(4 d) are copied, floor(4 d) exchanged."""
    guests: set[str] = set()
    for seed in range(25):
        a, b = islands(heaps([4.0, 3, 2, 1], B), count=2, mixing=mixing, elites=0, seed=seed)
        assert len(a) == len(b) == 4
        for own, island in (("a", a), ("b", b)):
            kept = sorted(each for each in island if each[0] == own)
            assert kept == [f"{own}{number}" for number in range(1, 5 - exchanged)]
            guests |= {each for each in island if each[0] != own}
    expected = {f"{own}{n}" for own in "ab" for n in range(1, copied + 1)} if exchanged else set()
    assert guests == expected


def test_ratios_are_the_decimals_they_are_written_as() -> None:
    """0.07 * 100 is 7.000000000000001 in floats, and 0.29 * 100 is 28.999999999999996."""
    many = heaps([float(-number) for number in range(100)], [5.0] * 100)
    for seed in range(5):
        a, b = islands(many, count=2, mixing=0.07, elites=0, seed=seed)
        assert {each for each in b if each[0] == "a"} == {f"a{n}" for n in range(1, 8)}
        assert sum(each[0] == "b" for each in a) == 7
    a, _ = islands(many, count=2, mixing=0.29, elites=0)
    assert sum(each[0] == "b" for each in a) == 29
    a, _ = islands(many, count=2, mixing=1, elites=0.07)
    assert sum(each[0] == "a" for each in a) == 7


def test_nothing_is_mixed_without_mixing_or_with_all_protected() -> None:
    own = [[f"a{n}" for n in range(1, 11)], [f"b{n}" for n in range(1, 5)]]
    assert islands(heaps(A, B), count=2, mixing=0, elites=0) == own
    assert islands(heaps(A, B), count=2, mixing=1, elites=1) == own


def test_where_the_smaller_score_is_the_better_one() -> None:
    a, b = islands(
        heaps([4.0, 3, 2, 1], B),
        count=2,
        mixing=0.25,
        elites=0.25,
        direction=Direction.MINIMISE,
    )
    assert a == ["a4", "a3", "a2", "b4"]
    assert b == ["a4", "b4", "b3", "b2"]


def test_of_equal_scores_the_shorter_program_ranks_first_then_the_earlier() -> None:
    candidates, vectors = heaps([1.0, 1.0, 1.0], [0.0])
    candidates[1] = Candidate(id="short", program="a", score=1.0)
    (a, _) = islands((candidates, vectors), count=2, mixing=0, elites=0)
    assert a == ["short", "a1", "a3"]


def test_fewer_programs_than_islands_are_handed_out_in_turn() -> None:
    """Two programs, five islands: two clusters of 1, of which none can give and keep one."""
    found = islands(heaps([1.0], [2.0]), count=5, mixing=0.5, elites=0.5)
    assert found == [["a1"], ["b1"], ["a1"], ["b1"], ["a1"]]
    assert islands(heaps([1.0]), count=3, mixing=1, elites=0) == [["a1"]] * 3
    assert islands(heaps([]), count=3, mixing=1, elites=0) == [[], [], []]


def test_islands_of_the_same_cluster_draw_for_themselves() -> None:
    """Equal vectors are one cluster each, so eight islands share two."""
    candidates, vectors = heaps([9.0, 8, 7, 6], [5.0, 4, 3, 2])
    vectors[:, 1] = 0
    found = islands((candidates, vectors), count=8, mixing=0.75, elites=0.5)
    assert all(island[:2] == ["a1", "a2"] for island in found[::2])
    guests = {tuple(island[2:]) for island in found[::2]}
    assert guests <= {("b1", "b2"), ("b1", "b3"), ("b2", "b3")}  # 2 of the top ceil(3)
    assert len(guests) > 1


def test_the_same_seed_gives_the_same_programs() -> None:
    pool = heaps(A, [float(n) for n in range(10)], [float(n) for n in range(10, 20)])
    found = [islands(pool, count=3, mixing=0.4, elites=0.1, seed=seed) for seed in (1, 1, 2, 3)]
    assert found[0] == found[1]
    assert found[0] != found[2] or found[0] != found[3]
