"""From the recorded events of a call to the group that a trainer learns from.

Does not cover what a child is worth: ``rewards.py``.
"""

from collections.abc import Callable

from engine.core import INITIAL, Call, Child, Direction
from engine.learning.group import Answer, Group, Member
from engine.learning.rewards import Outcome, Rewards
from engine.settings import LearningSettings
from engine.store import RunHistory

MakeGroup = Callable[[Call, RunHistory], Group | None]
"""Returns the group of a call whose children are all judged; None where nothing can be learned."""

AnswersOf = Callable[[Call, Child, RunHistory], tuple[Answer, ...]]
"""Returns the answers that a child's advantage is for; none where nothing can be learned."""

FEWEST = 2
"""Members without which there is nothing to compare."""


def rewards_of(
    settings: LearningSettings,
    *,
    direction: Direction,
    target: float | None,
    history: RunHistory,
) -> Rewards:
    """Return the rule by which a run's children are rewarded.

    Args:
        settings: that name the rule.
        direction: of the problem's score.
        target: the score that the problem declares as one; None for none.
        history: of the run.

    Raises:
        UserError: the rule needs a target, and there is none that will do.
    """
    initial = history.verdicts[INITIAL].score
    assert initial is not None  # or the run had not begun
    return Rewards(kind=settings.reward, direction=direction, initial=initial, target=target)


def group_of(
    call: Call, history: RunHistory, *, rewards: Rewards, answers_of: AnswersOf
) -> Group | None:
    """Return the group of a call whose children are all judged.

    Left out are children that nobody judged, because the budget was spent, and those of whose
    answers nothing can be learned. None where fewer than two are left, where the call does not say
    what its children were sampled from, or where one answer listed several of them.

    Args:
        call: the call.
        history: of the run.
        rewards: of the children.
        answers_of: returns what a child's advantage is for.
    """
    parent, key = history.verdicts[call.parent].score, history.direction.key
    if call.sampled_from is None or parent is None or len(call.temperatures) != call.k:
        return None
    children = [history.children[f"{call.iteration}.{index}"] for index in range(call.k)]
    outcomes = [outcome_of(child.id, history) for child in children]
    worth = rewards.of(outcomes, parent_score=parent)
    members = []
    for child, outcome, reward in zip(children, outcomes, worth, strict=True):
        answers = answers_of(call, child, history)
        if answers and reward is not None:
            score = outcome.score
            member = Member(
                answers=answers,
                reward=reward,
                key=outcome.key,
                is_new=score is not None,
                gain=None if score is None else key(parent) - key(score),
            )
            members.append(member)
    if len(members) < FEWEST:
        return None
    return Group(iteration=call.iteration, adapter=call.adapter, members=tuple(members))


def own_answer(call: Call, child: Child, history: RunHistory) -> tuple[Answer, ...]:
    """Return the answer that a child was read in; none if it was ended before its first token."""
    if call.sampled_from is None or not len(child.logprobs) == len(child.completion_ids) > 0:
        return ()
    answer = Answer(
        sampled_from=call.sampled_from,
        temperature=call.temperatures[child.index],
        token_ids=child.completion_ids,
        logprobs=child.logprobs,
    )
    return (answer,)


def outcome_of(child_id: str, history: RunHistory) -> Outcome:
    """Return what became of a child that is judged."""
    child, verdict = history.children[child_id], history.verdicts.get(child_id)
    return Outcome(
        refusal=child.refusal,
        failure=None if verdict is None else verdict.evaluation.failure,
        score=None if verdict is None else verdict.score,
        key=None if child.program is None else child.program.key,
    )
