"""What all parent policies have in common: their contract, and whatever scores they meet."""

from __future__ import annotations

import pytest
from draws import candidates, counts, new_policy, outcome, p_value
from hypothesis import given
from hypothesis import strategies as st

from engine.core import Candidate, Direction
from engine.search.parents import PARENTS, Offspring, ParentOutcome, ParentPolicy

HYBRID = {"p_elite": 0.25, "p_uniform": 0.25, "gamma": 2.0, "epsilon": 0.1}

policies = pytest.mark.parametrize("name", PARENTS.names)
directions = pytest.mark.parametrize("direction", Direction)


def policy(name: str, direction: Direction = Direction.MAXIMISE) -> ParentPolicy:
    return new_policy(name, direction=direction, **(HYBRID if name == "hybrid" else {}))


def taught(
    name: str, direction: Direction, rounds: int = 6
) -> tuple[ParentPolicy, list[Candidate]]:
    """Return a policy after some iterations of two children, one in three of them without score."""
    made, known = policy(name, direction), candidates(0.5)
    made.begin_with(known[0])
    for iteration in range(rounds):
        parent = made.choose(known, u=(iteration * 0.37) % 1, key=iteration).candidate
        scores = [None if (2 * iteration + i) % 3 == 0 else iteration / 10 + i for i in range(2)]
        children = [Offspring(id=f"{iteration}.{i}", score=s) for i, s in enumerate(scores)]
        made.tell(ParentOutcome(iteration=iteration, parent=parent.id, children=tuple(children)))
        known += [
            Candidate(id=each.id, program="x = 1", score=each.score)
            for each in children
            if each.score is not None
        ]
    return made, known


@policies
@directions
def test_choosing_changes_nothing_and_the_order_of_the_candidates_hardly_matters(
    name: str, direction: Direction
) -> None:
    made, known = taught(name, direction)
    for key in range(100):
        u = key / 100
        chosen = made.choose(known, u=u, key=key)
        assert chosen.candidate in known and chosen.rule
        assert made.choose(known, u=u, key=key) == chosen
        assert made.choose(known[::-1], u=u, key=key) == chosen


@policies
@directions
def test_one_that_is_told_the_log_again_chooses_the_same(name: str, direction: Direction) -> None:
    (one, known), (other, _) = (taught(name, direction) for _ in range(2))
    for key in range(2**63, 2**63 + 100):
        one.choose(known, u=0.5, key=key + 1)
        assert one.choose(known, u=0.7, key=key) == other.choose(known, u=0.7, key=key)


@policies
@directions
def test_maximising_and_minimising_are_mirror_images(name: str, direction: Direction) -> None:
    made, mirror = (policy(name, each) for each in Direction)
    one = candidates(1.0, -2.0, 3.0, 0.0)
    other = candidates(-1.0, 2.0, -3.0, 0.0)
    made.tell(outcome(0, "c0", a=2.0, b=-5.0))
    mirror.tell(outcome(0, "c0", a=-2.0, b=5.0))
    for key in range(200):
        chosen, mirrored = (
            made.choose(one, u=key / 200, key=key),
            mirror.choose(other, u=key / 200, key=key),
        )
        assert (mirrored.candidate.id, mirrored.rule) == (chosen.candidate.id, chosen.rule)


@policies
def test_the_only_candidate_is_always_the_parent(name: str) -> None:
    only = candidates(-7.0)
    assert all(policy(name).choose(only, u=k / 50, key=k).candidate == only[0] for k in range(50))


@pytest.mark.parametrize("name", ["hybrid", "power", "shinka", "adaevolve"])
def test_equal_candidates_are_drawn_equally_often(name: str) -> None:
    made = new_policy("power", direction=Direction.MAXIMISE) if name == "hybrid" else policy(name)
    if name == "adaevolve":  # the top quarter of four is one of them
        made = new_policy(name, direction=Direction.MAXIMISE, intensity_min=1, intensity_max=1)
    assert p_value(counts(made, candidates(2.0, 2.0, 2.0, 2.0)), [1, 1, 1, 1]) > 1e-4


finite = st.floats(allow_nan=False, allow_infinity=False)


@policies
@given(
    st.lists(finite, min_size=1, max_size=6),
    st.lists(st.none() | finite, max_size=4),
    st.sampled_from(Direction),
    st.floats(0, 1, exclude_max=True),
    st.integers(0, 2**64 - 1),
)
def test_any_finite_scores_give_a_parent(
    name: str,
    scores: list[float],
    children: list[float | None],
    direction: Direction,
    u: float,
    key: int,
) -> None:
    made, known = policy(name, direction), candidates(*scores)
    made.begin_with(known[0])
    made.tell(outcome(0, "c0", **{f"0.{i}": score for i, score in enumerate(children)}))
    known += [
        Candidate(id=f"0.{i}", program="", score=score)
        for i, score in enumerate(children)
        if score is not None
    ]
    assert made.choose(known, u=u, key=key).candidate in known
    assert made.choose(known[-1:], u=u, key=key).candidate == known[-1]  # only some of those told


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("power", {"gamma": -1.0}),
        ("power", {"gamma": float("nan")}),
        ("power", {"epsilon": 0.0}),
        ("power", {"epsilon": 1.5}),
        ("hybrid", {**HYBRID, "p_elite": 0.8}),
        ("hybrid", {**HYBRID, "p_uniform": -0.1}),
        ("shinka", {"sharpness": -1.0}),
        ("adaevolve", {"decay": 1.0}),
        ("adaevolve", {"intensity_min": 0.6}),
        ("adaevolve", {"intensity_max": 1.1}),
        ("puct", {"exploration": -1.0}),
    ],
)
def test_parameters_out_of_their_range_are_refused(name: str, wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="|".join(wrong)):
        new_policy(name, direction=Direction.MAXIMISE, **wrong)
