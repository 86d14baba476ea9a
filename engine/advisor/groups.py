"""Groups for the trainer where an advisor decides: its answers are trained, the programs are not.

**Credit.** A chain's two or three answers lead to one program, which has one reward. All tokens of
all of them get the child's advantage, as all tokens of a plain answer do (section 3.2, Eq. 6: a
score for each response, broadcast to its tokens). No answer is judged by itself: that an idea was
called new, and not what it was, is worth what came of it. A chain that ended at an answer of no use
has the answers up to there, and the reward of a child without a program. What the implementer wrote
is left out.

**The group** is the K chains of one call, Eq. 1's n samples of one state. The source's appendix B
has one candidate of each of n threads instead, whose states differ, so that a mean over them is no
baseline for any.

A chain whose endpoint failed is left out: what came of it says nothing of the advice.
"""

from collections.abc import Mapping

from engine.core import Advice, Call, SampledFrom
from engine.learning.group import Answer, Group, Member
from engine.learning.groups import outcome_of
from engine.learning.rewards import Rewards
from engine.store import RunHistory

FEWEST = 2
"""Members without which there is nothing to compare."""


def advised_group_of(call: Call, history: RunHistory, *, rewards: Rewards) -> Group | None:
    """Return `advised_group` with the run's rewards; see `engine.learning.groups.group_of`."""
    parent = history.verdicts[call.parent].score
    if parent is None:
        return None
    ids = [f"{call.iteration}.{index}" for index in range(call.k)]
    worth = rewards.of([outcome_of(each, history) for each in ids], parent_score=parent)
    given = {each: reward for each, reward in zip(ids, worth, strict=True) if reward is not None}
    return advised_group(call, history, rewards=given)


def answers_of(call: Call, advice: Advice) -> tuple[Answer, ...] | None:
    """Return the answers that a child's advantage is for, in their order.

    None where there is nothing to learn from: the endpoint failed, the call or an answer lacks what
    it was sampled from, or the first answer was ended before its first token.
    """
    if call.sampled_from is None or advice.outage is not None:
        return None
    answers = []
    for each in advice.consultations:
        if len(each.logprobs) != len(each.answer_ids):
            return None
        sampled_from = SampledFrom(
            prompt_ids=(*call.sampled_from.prompt_ids[: each.shared], *each.own_ids),
            grammar=each.grammar,
        )
        if each.answer_ids:
            answers.append(
                Answer(
                    sampled_from=sampled_from,
                    temperature=each.temperature,
                    token_ids=each.answer_ids,
                    logprobs=each.logprobs,
                )
            )
    return tuple(answers) or None


def advised_group(call: Call, history: RunHistory, *, rewards: Mapping[str, float]) -> Group | None:
    """Return the group of a call whose children are all judged.

    Args:
        call: whose children had an advisor.
        history: of the run.
        rewards: of the children, by id; a child without one is left out, because nobody judged it.

    Returns:
        The group; None where fewer than two members are left.
    """
    parent, key = history.verdicts[call.parent].score, history.direction.key
    members = []
    for index in range(call.k):
        child = history.children[f"{call.iteration}.{index}"]
        advice = history.advice.get(child.id)
        answers = None if advice is None else answers_of(call, advice)
        if answers is None or child.id not in rewards:
            continue
        verdict = history.verdicts.get(child.id)
        score = None if verdict is None else verdict.score
        members.append(
            Member(
                answers=answers,
                reward=rewards[child.id],
                key=None if child.program is None else child.program.key,
                is_new=score is not None,
                gain=None if score is None or parent is None else key(parent) - key(score),
            )
        )
    if len(members) < FEWEST:
        return None
    return Group(iteration=call.iteration, adapter=call.adapter, members=tuple(members))
