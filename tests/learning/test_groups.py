"""From a call's recorded events to its group."""

from dataclasses import replace

import pytest
from recorded import FATES, PARENT_SCORE, call_of, child_in, history_of

from engine.core import Call, Child, Direction, Event, Refusal
from engine.learning import group_of, own_answer
from engine.learning.group import Group
from engine.learning.rewards import Rewards


def grouped(events: list[Event], direction: Direction = Direction.MAXIMISE) -> Group | None:
    (call,) = (each for each in events if isinstance(each, Call))
    rewards = Rewards(kind="rank", direction=direction, initial=PARENT_SCORE, target=None)
    return group_of(call, history_of(events, direction), rewards=rewards, answers_of=own_answer)


def test_the_members_are_the_children_that_were_judged() -> None:
    events = call_of(7, adapter=3)
    group = grouped(events)
    assert group is not None
    assert (group.iteration, group.adapter) == (7, 3)
    # The best one and its copy share 1; the one that failed and the one without a program have 0.
    assert [member.reward for member in group.members] == pytest.approx([0.5, 0.5, 0.225, 0, 0])
    assert [member.is_new for member in group.members] == [True, False, True, False, False]
    assert [member.gain for member in group.members] == [0.25, None, -0.25, None, None]
    keys = [member.key for member in group.members]
    assert keys[0] == keys[1] != keys[2]
    assert keys[4] is None
    for index, member in enumerate(group.members):
        (answer,) = member.answers
        child = child_in(events, f"7.{index}")
        assert (answer.token_ids, answer.logprobs) == (child.completion_ids, child.logprobs)
        assert answer.temperature == pytest.approx(0.5 + 0.125 * index)
        assert answer.sampled_from.prompt_ids == (1, 2, 7)
        assert answer.sampled_from.banned == (5,)


def test_where_less_is_better_a_lower_score_is_a_gain() -> None:
    group = grouped(call_of(1), Direction.MINIMISE)
    assert group is not None
    assert [member.gain for member in group.members] == [-0.25, None, 0.25, None, None]
    rewards = [member.reward for member in group.members]
    assert rewards == pytest.approx([0.1125, 0.1125, 1.0, 0.0, 0.0])


def test_an_answer_that_was_cut_off_before_its_first_token_is_left_out() -> None:
    events = [
        replace(each, completion_ids=(), logprobs=())
        if isinstance(each, Child) and each.index == 4
        else each
        for each in call_of(1)
    ]
    group = grouped(events)
    assert group is not None
    assert len(group.members) == 4


def test_no_group_where_nothing_can_be_learned() -> None:
    assert grouped(call_of(1, learns=False)) is None
    assert grouped(call_of(1, FATES[:1])) is None
    call, *rest = call_of(1)
    assert isinstance(call, Call)
    assert grouped([replace(call, temperatures=(1.0, 1.0)), *rest]) is None
    unjudged = [("x = 1\n", 0.75), ("x = 4\n", Refusal.BUDGET), ("x = 5\n", Refusal.BUDGET)]
    assert grouped(call_of(1, unjudged)) is None
