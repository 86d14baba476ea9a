"""What children are worth: Eq. 5 in both directions, ranks, and each way not to get a score."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core import Direction, Failure, Refusal, UserError
from engine.learning.rewards import Kind, Outcome, Rewards

UP, DOWN = Direction.MAXIMISE, Direction.MINIMISE
UNJUDGED = Outcome(key="u")
OUT_OF_BUDGET = Outcome(refusal=Refusal.BUDGET, key="b")
NO_MODEL = Outcome(refusal=Refusal.FAILED)
FAULTS = [Outcome(refusal=each) for each in Refusal if each not in (Refusal.BUDGET, Refusal.FAILED)]
FAULTS += [Outcome(failure=each) for each in Failure if each is not Failure.SCREENED]
FAULTS += [Outcome(score=each) for each in (math.nan, math.inf, -math.inf)]
scores = st.floats(-1e6, 1e6)


def rewards(kind: Kind, direction: Direction = UP) -> Rewards:
    initial, target = (1.0, 3.0) if direction is UP else (3.0, 1.0)
    return Rewards(kind=kind, direction=direction, initial=initial, target=target)


def scored(*values: float) -> list[Outcome]:
    """Children with these scores, and programs that differ."""
    return [Outcome(score=value, key=f"key {i}") for i, value in enumerate(values)]


@pytest.mark.parametrize(
    ("direction", "score", "reward"),
    [
        (UP, 1.0, 0.0),
        (UP, 1.5, 1.25),
        (UP, 3.0, 5.0),
        (UP, -7.0, 0.0),
        (UP, 1e308, 5.0),
        (DOWN, 3.0, 0.0),
        (DOWN, 1.5, 3.75),
        (DOWN, 1.0, 5.0),
        (DOWN, -1e308, 5.0),
        (DOWN, 4.0, 0.0),
    ],
)
def test_progress_towards_the_target_is_rewarded_from_0_to_5(
    direction: Direction, score: float, reward: float
) -> None:
    given = scored(score)
    assert rewards("target", direction).of(given, parent_score=2.0) == (reward,)
    assert rewards("target", direction).of(given, parent_score=9.0) == (reward,)


@given(st.lists(scores, min_size=2, max_size=2), st.sampled_from([UP, DOWN]))
def test_a_better_score_is_never_worth_less(pair: list[float], direction: Direction) -> None:
    best, worst = sorted(pair, key=direction.key)
    first, second = rewards("target", direction).of(scored(best, worst), parent_score=0.0)
    assert first is not None and second is not None
    assert 0 <= second <= first <= 5


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("kind", "reward"), [("target", -1.0), ("rank", 0.0)])
def test_a_child_without_a_score_or_news(fault: Outcome, kind: Kind, reward: float) -> None:
    assert rewards(kind).of([fault, *scored(2.5)], parent_score=2.0)[0] == reward


@pytest.mark.parametrize(("kind", "reward"), [("target", 0.0), ("rank", 0.05)])
def test_a_screened_child_is_worth_more_than_a_failed_one(kind: Kind, reward: float) -> None:
    assert rewards(kind).of([Outcome(failure=Failure.SCREENED)], parent_score=2.0) == (reward,)


@pytest.mark.parametrize("kind", ["target", "rank"])
def test_whom_nobody_judged_is_left_out(kind: Kind) -> None:
    children = [UNJUDGED, *scored(2.5), OUT_OF_BUDGET, NO_MODEL]
    found = rewards(kind).of(children, parent_score=2.0)
    assert (found[0], *found[2:]) == (None, None, None)
    assert found[1] is not None


@pytest.mark.parametrize("kind", ["target", "rank"])
def test_no_children_have_no_rewards(kind: Kind) -> None:
    assert rewards(kind).of([], parent_score=2.0) == ()


@pytest.mark.parametrize("direction", [UP, DOWN])
def test_ranks_are_above_the_parent_or_not(direction: Direction) -> None:
    signed = 1 if direction is UP else -1
    given = scored(*(signed * each for each in (5.0, 1.0, 2.0, 4.0, -3.0, 3.0)))
    found = rewards("rank", direction).of(given, parent_score=signed * 2.0)
    assert found == pytest.approx((1.0, 0.4, 0.05, 0.9, 0.05, 0.8))


def test_a_single_better_child_is_the_best_and_a_single_worse_one_in_the_middle() -> None:
    found = rewards("rank").of(scored(2.001, 1.0), parent_score=2.0)
    assert found == pytest.approx((1.0, (0.05 + 0.4) / 2))


def test_worse_children_stand_in_their_order_too() -> None:
    found = rewards("rank").of(scored(1.0, -8.0, 0.0, 1.0, 2.0), parent_score=2.0)
    first = 0.4 - 0.35 * 0.5 / 3  # shared by the first two places
    assert found == pytest.approx((first, 0.05, 0.4 - 0.35 * 2 / 3, first, 0.05))


def test_equal_scores_share_the_mean_of_their_places() -> None:
    found = rewards("rank").of(scored(4.0, 3.0, 4.0), parent_score=2.0)
    assert found == pytest.approx((1 - 0.2 * 0.5 / 2, 0.8, 1 - 0.2 * 0.5 / 2))
    assert rewards("rank").of(scored(3.0, 3.0), parent_score=2.0) == pytest.approx((0.9, 0.9))


def test_ranks_need_no_target() -> None:
    rule = Rewards(kind="rank", direction=UP, initial=1.0, target=None)
    assert rule.of(scored(2.5), parent_score=2.0) == (1.0,)


COPY = Outcome(refusal=Refusal.DUPLICATE, key="same")


def test_equal_siblings_share_one_reward_by_rank() -> None:
    first, other = Outcome(score=4.0, key="same"), Outcome(score=3.0, key="other")
    found = rewards("rank").of([COPY, first, other, COPY], parent_score=2.0)
    assert found == (1 / 3, 1 / 3, 0.8, 1 / 3)  # and they take one place among the better ones


def test_the_first_of_equal_siblings_keeps_its_progress() -> None:
    found = rewards("target").of([Outcome(score=3.0, key="same"), COPY], parent_score=2.0)
    assert found == (5.0, -1.0)


def test_a_copy_of_an_earlier_program_shares_nothing() -> None:
    given = [COPY, Outcome(score=4.0, key="other"), Outcome(refusal=Refusal.LONG, key="same")]
    assert rewards("rank").of(given, parent_score=2.0) == (0.0, 1.0, 0.0)


def test_copies_of_a_sibling_that_failed_or_was_not_judged_are_like_it() -> None:
    failed = Outcome(failure=Failure.ERROR, key="same")
    assert rewards("rank").of([failed, COPY], parent_score=2.0) == (0.0, 0.0)
    unjudged = Outcome(key="same")
    assert rewards("rank").of([unjudged, COPY], parent_score=2.0) == (None, None)


def test_answers_without_a_program_are_no_copies_of_each_other() -> None:
    given = [Outcome(score=3.0), Outcome(score=4.0), Outcome(refusal=Refusal.DUPLICATE)]
    assert rewards("rank").of(given, parent_score=2.0) == (0.8, 1.0, 0.0)


def test_a_problem_without_a_target_is_refused_in_a_line() -> None:
    with pytest.raises(UserError, match=r"'target: SCORE' .* or give learning\.reward=rank$"):
        Rewards(kind="target", direction=UP, initial=1.0, target=None)


@pytest.mark.parametrize(("direction", "target"), [(UP, 0.9), (UP, 1.0), (DOWN, 1.1), (DOWN, 1.0)])
def test_a_target_has_to_be_ahead(direction: Direction, target: float) -> None:
    with pytest.raises(UserError, match=r"target is .* no better than .* score, 1\.0; mend"):
        Rewards(kind="target", direction=direction, initial=1.0, target=target)
    Rewards(kind="rank", direction=direction, initial=1.0, target=target)
