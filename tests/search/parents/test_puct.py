"""PUCT against values worked out by hand."""

from __future__ import annotations

import math

import pytest
from draws import candidates, new_policy, outcome

from engine.core import Candidate, Direction

UP, DOWN = Direction.MAXIMISE, Direction.MINIMISE


def test_the_formula_by_hand() -> None:
    """R = 2, 4, 6 (c0, c1, c2) and a = 5, a child of c0; b, its grandchild, has no score.

    Three calls were made: T/G = 3; of c0 (children a, b1 without a score), of a (b2 without), and
    of c1 (d = 3). n/G: c0 2 (its own, and that of a), a 1, c1 1, c2 0.
    Q over [2, 6]: c0 its child 5: 0.75; c1 its child 3: 0.25; c2 itself: 1; a itself, as its child
    has none: 0.75; d itself: 0.25. Ranks 6, 5, 4, 3, 2: c2, a, c1, d, c0, so P = 5, 4, 3, 2, 1
    of 15. The bonus: P sqrt(1 + 3) / (1 + n/G).
    """
    policy = new_policy("puct", direction=UP)
    policy.tell(outcome(0, "c0", a=5.0, b1=None))
    policy.tell(outcome(1, "a", b2=None))
    policy.tell(outcome(2, "c1", d=3.0))
    a, d = (Candidate(id=i, program="x = 1", score=s) for i, s in (("a", 5.0), ("d", 3.0)))
    among = [*candidates(2.0, 4.0, 6.0), a, d]
    expected = [
        0.75 + 1 / 15 * 2 / 3,  # c0
        0.25 + 3 / 15 * 2 / 2,  # c1
        1.00 + 5 / 15 * 2 / 1,  # c2
        0.75 + 4 / 15 * 2 / 2,  # a
        0.25 + 2 / 15 * 2 / 1,  # d
    ]
    assert policy.values(among) == pytest.approx(expected)
    assert policy.choose(among, u=0.0, key=0).candidate.id == "c2"
    assert new_policy("puct", direction=UP, exploration=0).values(among) == pytest.approx(
        [0, 0.5, 1, 0.75, 0.25]
    )


def test_the_best_child_counts_and_not_the_mean_or_the_parent_itself() -> None:
    policy = new_policy("puct", direction=UP, exploration=0)
    policy.tell(outcome(0, "c0", a=9.0, b=0.0, c=None))
    policy.tell(outcome(1, "c1", d=1.0))
    policy.tell(outcome(2, "c0", e=2.0))
    a, b = (Candidate(id=i, program="x = 1", score=s) for i, s in (("a", 9.0), ("b", 0.0)))
    assert policy.values([*candidates(1.0, 5.0), a, b]) == pytest.approx([1, 1 / 9, 1, 0])


@pytest.mark.parametrize(("direction", "sign"), [(UP, 1), (DOWN, -1)])
def test_the_range_is_that_of_the_candidates(direction: Direction, sign: int) -> None:
    """27 calls of c0 with children of -100, which are no candidates, and 3 of c1 without a score.

    Rmax - Rmin = 1 - 0.8 = 0.2, T/G = 30, P = 3, 2, 1 of 6. So c1 has 0.964 and c2 0.928. Were the
    children in the range too, all but c0 would have Q near 1, and c2 the largest bonus.
    """
    policy, among = (
        new_policy("puct", direction=direction),
        candidates(1.0 * sign, 0.9 * sign, 0.8 * sign),
    )
    for number in range(27):
        policy.tell(outcome(number, "c0", **{f"{number}.0": -100.0 * sign}))
    for number in range(27, 30):
        policy.tell(outcome(number, "c1", **{f"{number}.0": None}))
    expected = [
        -100.8 / 0.2 + 3 / 6 * math.sqrt(31) / 28,
        0.5 + 2 / 6 * math.sqrt(31) / 4,
        0.0 + 1 / 6 * math.sqrt(31) / 1,
    ]
    assert policy.values(among) == pytest.approx(expected)
    assert policy.choose(among, u=0.0, key=0).candidate.id == "c1"


def test_a_child_outside_of_a_range_of_one_score_decides() -> None:
    policy, among = new_policy("puct", direction=UP), candidates(5.0, 5.0)
    policy.tell(outcome(0, "c1", a=4.0))
    assert policy.choose(among, u=0.0, key=0).candidate.id == "c0"
    for number in range(1, 99):
        policy.tell(outcome(number, "c0"))
    assert policy.choose(among, u=0.0, key=0).candidate.id == "c0"
    policy.tell(outcome(99, "c0", b=3.0))
    assert policy.choose(among, u=0.0, key=0).candidate.id == "c1"


@pytest.mark.parametrize("factor", [1.0, 1e-300, -3.0, 1.7e307])
def test_neither_scale_nor_offset_matters(factor: float) -> None:
    scores, children = (1.0, 4.0, 2.0, -6.0), {"a": 3.0, "b": -7.0}
    one, other = (
        new_policy("puct", direction=UP),
        new_policy("puct", direction=UP if factor > 0 else DOWN),
    )
    one.tell(outcome(0, "c0", **children))
    other.tell(outcome(0, "c0", **{name: score * factor for name, score in children.items()}))
    got = other.values(candidates(*(score * factor for score in scores)))
    assert got == pytest.approx(one.values(candidates(*scores)))


def test_a_range_that_is_not_finite() -> None:
    got = new_policy("puct", direction=UP).values(candidates(-1.7e308, 0.0, 1.7e308))
    assert got == pytest.approx([1 / 6, 0.5 + 2 / 6, 1 + 3 / 6])


def test_equal_scores_share_their_ranks_and_the_bonus_goes_round() -> None:
    """All equal: P = 1/3 each, Q = Rmin; the one with the fewest calls is next, and so on."""
    policy, among = new_policy("puct", direction=UP), candidates(5.0, 5.0, 5.0)
    assert policy.values(among) == pytest.approx([1 / 3] * 3)
    order = []
    for iteration in range(6):
        order.append(policy.choose(among, u=0.3, key=9).candidate.id)
        policy.tell(outcome(iteration, order[-1]))
    assert order == ["c0", "c1", "c2"] * 2


def test_ties_go_to_the_better_then_the_shorter_then_the_first() -> None:
    policy = new_policy("puct", direction=UP, exploration=0)
    policy.tell(outcome(0, "low", top=8.0))
    low = Candidate(id="low", program="x", score=1.0)
    top = Candidate(id="top", program="x = 1 + 1", score=8.0)
    short = Candidate(id="short", program="x = 8", score=8.0)
    same = Candidate(id="same", program="y = 8", score=8.0)
    among = [low, top, short, same]
    assert policy.values(among) == pytest.approx([1, 1, 1, 1])
    assert policy.choose(among, u=0, key=0).candidate == short
    assert policy.choose([low, top], u=0, key=0).candidate == top


def test_failed_calls_count_for_all_that_the_parent_descends_from() -> None:
    policy, (root,) = new_policy("puct", direction=UP), candidates(1.0)
    policy.tell(outcome(0, "c0", a=2.0))
    policy.tell(outcome(1, "a", b=3.0))
    for iteration in range(2, 12):
        policy.tell(outcome(iteration, "b", **{f"f{iteration}": None}))
    a, b = (Candidate(id=i, program="x = 1", score=s) for i, s in (("a", 2.0), ("b", 3.0)))
    # T/G = 12; n/G = 12, 11, 10; Q = 0.5, 1, 1.
    assert policy.values([root, a, b]) == pytest.approx(
        [
            0.5 + 1 / 6 * math.sqrt(13) / 13,
            1 + 2 / 6 * math.sqrt(13) / 12,
            1 + 3 / 6 * math.sqrt(13) / 11,
        ]
    )


def test_the_buffer_holds_the_best_two_of_each_parent_and_the_best_of_all() -> None:
    """Calls of c0 (a 5, b 3, c 4, d none) and of a (e 1, f 2): a, c, e and f enter, b does not."""
    policy = new_policy("puct", direction=UP, buffer=3)
    roots = candidates(0.0)
    policy.begin_with(roots[0])
    policy.tell(outcome(0, "c0", a=5.0, b=3.0, c=4.0, d=None))
    policy.tell(outcome(1, "a", e=1.0, f=2.0))
    scores = {"a": 5.0, "b": 3.0, "c": 4.0, "e": 1.0, "f": 2.0}
    children = [Candidate(id=i, program="x = 1", score=s) for i, s in scores.items()]
    assert [each.id for each in policy.buffered(children)] == ["a", "c", "f"]
    assert [each.id for each in policy.buffered([*roots, *children])] == ["c0", "a", "c", "f"]
    assert policy.buffered(children[1:2]) == children[1:2]  # none of the buffer
    down = new_policy("puct", direction=DOWN, children=1)
    down.tell(outcome(0, "c0", a=5.0, b=3.0, c=4.0, d=None))
    assert [each.id for each in down.buffered(children[:3])] == ["b"]


def test_a_later_call_of_a_parent_takes_the_places_of_its_earlier_children() -> None:
    """Two calls of c0: a 5 and b 3, then c 4, d 3 and e 2. Its best two are a and c."""
    policy = new_policy("puct", direction=UP)
    policy.tell(outcome(0, "c0", a=5.0, b=3.0))
    scores = {"a": 5.0, "b": 3.0, "c": 4.0, "d": 3.0, "e": 2.0}
    children = [Candidate(id=i, program="x = 1", score=s) for i, s in scores.items()]
    assert [each.id for each in policy.buffered(children[:2])] == ["a", "b"]
    policy.tell(outcome(1, "c0", c=4.0, d=3.0, e=2.0))
    assert [each.id for each in policy.buffered(children)] == ["a", "c"]


@pytest.mark.parametrize("is_early", [False, True])
def test_a_migrant_or_a_fill_is_held_as_a_child_is(is_early: bool) -> None:
    """It may join while the first call is under way, which makes it no initial program."""
    policy, (root, migrant) = new_policy("puct", direction=UP, buffer=1), candidates(0.0, 7.0)
    policy.begin_with(root)
    if is_early:
        policy.receive(migrant)
    policy.tell(outcome(0, "c0", a=8.0))
    if not is_early:
        policy.receive(migrant)
    child = Candidate(id="a", program="x = 1", score=8.0)
    assert policy.buffered([root, migrant, child]) == [root, child]


@pytest.mark.parametrize(("direction", "sign"), [(UP, 1), (DOWN, -1)])
def test_the_range_is_not_that_of_the_initial_program(direction: Direction, sign: int) -> None:
    """The initial c0 has 0, its children a and b have 9 and 10: Rmax - Rmin = 1.

    One call: T/G = 1, n/G of c0 is 1. Q from Rmin = 9: c0 its best child 1, a 0, b 1; P = 1, 2, 3
    of 6. With c0 in the range a's Q would be 0.9, hardly less than b's.
    """
    policy = new_policy("puct", direction=direction)
    (root,) = candidates(0.0)
    policy.begin_with(root)
    assert policy.values([root]) == pytest.approx([1.0])  # P = 1, and Q its own
    policy.tell(outcome(0, "c0", a=9.0 * sign, b=10.0 * sign))
    a, b = (Candidate(id=i, program="x = 1", score=s * sign) for i, s in (("a", 9.0), ("b", 10.0)))
    assert policy.values([root, a, b]) == pytest.approx(
        [1 + 1 / 6 * math.sqrt(2) / 2, 2 / 6 * math.sqrt(2), 1 + 3 / 6 * math.sqrt(2)]
    )
