"""What a chain's reward is credited to: the advisor's answers, and not the program.

**Credit.** A chain's two or three answers lead to one program, which has one reward. All tokens of
all of them get the child's advantage, as all tokens of a plain answer do (section 3.3, Eq. 6: a
score for each response, broadcast to its tokens). No answer is judged by itself: that an idea was
called new, and not what it was, is worth what came of it. A chain that ended at an answer of no use
has the answers up to there, and the reward of a child without a program. What the implementer wrote
is left out.

**The group** is the K chains of one call, Eq. 1's n samples of one state. The source's appendix B
has one candidate of each of n threads instead, whose states differ, so that a mean over them is no
baseline for any.

A chain whose endpoint failed is left out: what came of it says nothing of the advice.
"""

from engine.core import Advice, Call, Child, SampledFrom
from engine.learning.group import Answer
from engine.store import RunHistory


def advised_answers(call: Call, child: Child, history: RunHistory) -> tuple[Answer, ...]:
    """Return what a child's advantage is for; see `engine.learning.groups.group_of`."""
    advice = history.advice.get(child.id)
    return () if advice is None else answers_of(call, advice)


def answers_of(call: Call, advice: Advice) -> tuple[Answer, ...]:
    """Return the answers that a child's advantage is for, in their order.

    There are none where nothing can be learned: the endpoint failed, the call or an answer lacks
    what it was sampled from, or the first answer was ended before its first token.
    """
    if call.sampled_from is None or advice.outage is not None:
        return ()
    answers = []
    for each in advice.consultations:
        if len(each.logprobs) != len(each.answer_ids):
            return ()
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
    return tuple(answers)
