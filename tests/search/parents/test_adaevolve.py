"""AdaEvolve on one island: G, the intensity, and the ways to choose, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from draws import candidates, counts, new_policy, outcome, p_value

from engine.core import Candidate, Direction
from engine.search.parents import ParentPolicy
from engine.search.parents.adaevolve import Novelty

UP, DOWN = Direction.MAXIMISE, Direction.MINIMISE


def test_g_by_hand() -> None:
    """The first program: delta = 1, G = 0.1. Children 1.5 of 1: delta 0.5, and none: 0.

    G = 0.9 * 0.1 + 0.1 * 0.25 = 0.115, then 0.9 * 0.115 = 0.1035, also for a failed child:
    0.09315. Then 6 over 1.5 is clipped to 1: 0.9 * 0.09315 + 0.1 = 0.183835.
    """
    policy = new_policy("adaevolve", direction=UP)
    assert policy.accumulated == 0
    assert policy.intensity == pytest.approx(0.15 + 0.35 / (1 + 1e-4))
    policy.receive(candidates(1.0)[0])
    assert policy.accumulated == pytest.approx(0.1)
    assert policy.intensity == pytest.approx(0.15 + 0.35 / 1.316227782)
    expected = [0.115, 0.1035, 0.09315, 0.183835]
    for iteration, (score, g) in enumerate(zip([1.5, 1.2, None, 6.0], expected, strict=True)):
        policy.tell(outcome(iteration, "c0", **{f"{iteration}.0": score}))
        assert policy.accumulated == pytest.approx(g, abs=1e-8)


def test_siblings_count_one_by_one_in_the_order_of_their_places() -> None:
    policy = new_policy("adaevolve", direction=UP)
    policy.receive(candidates(1.0)[0])
    policy.tell(outcome(0, "c0", a=1.5, b=1.2, c=None, d=6.0))
    assert policy.accumulated == pytest.approx(0.183835, abs=1e-8)


def test_g_decays_while_an_island_stagnates_and_it_explores_again() -> None:
    policy = new_policy("adaevolve", direction=UP)
    policy.receive(candidates(1.0)[0])
    start = policy.intensity
    for iteration in range(60):
        policy.tell(outcome(iteration, "c0", **{f"{iteration}.0": 0.5}))
    assert policy.accumulated == pytest.approx(0.1 * 0.9**60)
    assert start < policy.intensity < 0.5


@pytest.mark.parametrize(
    ("direction", "best", "score", "delta"),
    [
        (DOWN, 2.0, 1.5, 0.25),
        (DOWN, 2.0, 2.5, 0.0),
        (UP, -4.0, -3.0, 0.25),
        (UP, 0.0, 1e-9, 0.1),  # over 0 + 1e-8
        (UP, 0.0, 5.0, 1.0),
        (UP, -1.7e308, 1.7e308, 1.0),
        (UP, 1.0, 1.0, 0.0),
    ],
)
def test_delta(direction: Direction, best: float, score: float, delta: float) -> None:
    policy = new_policy("adaevolve", direction=direction)
    policy.receive(candidates(best)[0])
    policy.tell(outcome(0, "c0", a=score))
    assert policy.accumulated == pytest.approx(0.09 + 0.1 * delta**2)


def test_a_guest_counts_if_it_is_better_than_all_that_the_island_has() -> None:
    policy = new_policy("adaevolve", direction=UP)
    policy.receive(candidates(2.0)[0])
    policy.receive(Candidate(id="worse", program="x", score=1.0))
    assert policy.accumulated == pytest.approx(0.1)
    policy.receive(Candidate(id="better", program="x", score=3.0))
    assert policy.accumulated == pytest.approx(0.09 + 0.1 * 0.25)
    policy.tell(outcome(0, "c0", a=2.9))  # better than the island's own, not than the migrant
    assert policy.accumulated == pytest.approx(0.9 * 0.115)


def program(name: str, text: str, score: float) -> Candidate:
    return Candidate(id=name, program=text, score=score)


def test_novelty_by_hand() -> None:
    """Lines: {a, b}, {a, b}, {a, c}, {d}. a is in 3 of 4 programs, b in 2, c and d in 1.

    The first: (2 + 1) / 2 others share a line, of 3, so 1 - 1.5 / 3; the third: (2 + 0) / 2.
    """
    texts = ["a\n  b\n", "b\na", "a\n\n    c\na", "d"]
    found = Novelty().of([program(f"p{i}", text, 0.0) for i, text in enumerate(texts)])
    assert found == pytest.approx([1 / 2, 1 / 2, 2 / 3, 1])
    assert Novelty().of([program("one", "a", 0.0)]) == pytest.approx([0])
    assert Novelty().of([program("empty", "\n", 0.0), program("one", "a", 0.0)]) == pytest.approx(
        [0, 1]
    )


def explorer(share: float) -> ParentPolicy:
    return new_policy("adaevolve", direction=UP, intensity_min=share, intensity_max=share)


AMONG = [
    program(f"p{i}", text, score)
    for i, (text, score) in enumerate(
        [("a\nb", 8), ("a\nc", 7), ("a\nb", 6), ("d", 5), ("a\nb", 4), ("e", 3), ("f", 2), ("g", 1)]
    )
]
# a is in 4 of 8, b in 3: (3 + 2) / 2 of 7 others; and c in 1: (3 + 0) / 2 of 7.
NOVELTY = [1 - 2.5 / 7, 1 - 1.5 / 7, 1 - 2.5 / 7, 1, 1 - 2.5 / 7, 1, 1, 1]
TOP_QUARTER = [1, 1, 0, 0, 0, 0, 0, 0]
TOP_FIFTH = [1, 0, 0, 0, 0, 0, 0, 0]


def test_to_explore_is_to_choose_by_novelty() -> None:
    assert p_value(counts(explorer(1.0), AMONG), NOVELTY) > 1e-4


def test_the_ways_are_mixed_as_the_intensity_says() -> None:
    """I = 0.4: explore 0.4, exploit 0.7 * 0.6 = 0.42, balanced 0.18, half of it each."""
    explored = np.array(NOVELTY) / sum(NOVELTY)
    exploited = 0.42 * np.array(TOP_QUARTER) / 2 + 0.09 * np.array(TOP_FIFTH)
    shares = (0.4 + 0.09) * explored + exploited
    assert p_value(counts(explorer(0.4), AMONG), list(shares)) > 1e-4


def test_u_says_which_way_is_taken() -> None:
    policy = explorer(0.4)
    ways = {
        u: {policy.choose(AMONG, u=u, key=k).candidate.id for k in range(99)}
        for u in (0, 0.9, 0.92)
    }
    assert len(ways[0]) > 2 and len(ways[0.92]) > 2
    # It exploits up to 0.82, and up to 0.91 it is balanced and does not explore.
    for u, top in ((0.4, {"p0", "p1"}), (0.81, {"p0", "p1"}), (0.83, {"p0"}), (0.9, {"p0"})):
        assert {policy.choose(AMONG, u=u, key=k).candidate.id for k in range(99)} == top
    rules = {u: policy.choose(AMONG, u=u, key=1).rule for u in (0, 0.399, 0.4, 0.81, 0.83, 0.999)}
    assert list(rules.values()) == [*["explore"] * 2, *["exploit"] * 2, *["balanced"] * 2]


@pytest.mark.parametrize(("size", "top"), [(1, 1), (3, 1), (4, 1), (7, 1), (8, 2), (11, 2)])
def test_the_top_quarter_is_at_least_the_best(size: int, top: int) -> None:
    among = candidates(*map(float, range(size)))
    chosen = {explorer(0.0).choose(among, u=0.5, key=key).candidate.id for key in range(99)}
    assert chosen == {each.id for each in among[-top:]}


@pytest.mark.parametrize(
    ("size", "top"), [(1, 1), (4, 1), (9, 1), (10, 2), (49, 9), (54, 10), (90, 10)]
)
def test_a_balanced_choice_is_among_the_top_fifth_of_ten_at_most(size: int, top: int) -> None:
    among = candidates(*map(float, range(size)))
    drawn = [explorer(0.0).choose(among, u=0.71, key=key) for key in range(199)]
    assert {each.candidate.id for each in drawn} == {each.id for each in among[-top:]}
    assert {each.rule for each in drawn} == {"balanced"}


def test_of_equal_ones_the_shorter_is_in_the_top_quarter() -> None:
    among = [program(f"p{i}", "x" * (9 - i), 1.0) for i in range(4)]
    assert explorer(0.0).choose(among, u=0.5, key=1).candidate.id == "p3"


def test_copies_without_number_can_still_be_chosen_when_exploring() -> None:
    """Novelty 0 counts as 0.001: three copies against one other of novelty 1."""
    among = [program(f"p{i}", "a", 0.0) for i in range(3)] + [program("other", "b\na", 0.0)]
    found = Novelty().of(among)
    assert found[:3] == pytest.approx([0.0] * 3) and found[3] == pytest.approx(1 / 2)
    got = counts(explorer(1.0), among, draws=20_000)
    assert p_value(got, [0.001, 0.001, 0.001, 0.5]) > 1e-4
    assert math.isclose(sum(got[:3]) / 20_000, 0.003 / 0.503, abs_tol=0.005)
