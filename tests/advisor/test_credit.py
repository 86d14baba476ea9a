"""Credit: all answers of a chain share what its program is worth, and nothing else is trained."""

from __future__ import annotations

from dataclasses import replace

from births import made_call

from engine.advisor import advised_answers, answers_of
from engine.core import (
    INITIAL,
    Advice,
    Call,
    Child,
    Consultation,
    Direction,
    Evaluation,
    Program,
    Question,
    Refusal,
    SampledFrom,
    Session,
    Verdict,
)
from engine.learning import group_of
from engine.learning.group import Answer, Group
from engine.learning.rewards import Rewards
from engine.store import Event, Recorded, RunHistory
from engine.syntax import read

PROMPT = tuple(range(100, 110))
CALL = replace(
    made_call(0),
    adapter=7,
    sampled_from=SampledFrom(prompt_ids=PROMPT, grammar="root ::= first"),
)


def consultation(question: Question, *, tokens: int, shared: int = 6) -> Consultation:
    first = question is Question.IDEAS
    return Consultation(
        question=question,
        answer="",
        answer_ids=tuple(range(tokens)),
        finish_reason="stop",
        logprobs=(-0.25,) * tokens,
        prompt_tokens=12,
        cached_prompt_tokens=0,
        llm_seconds=0.0,
        temperature=0.75,
        shared=shared,
        own_ids=PROMPT[shared:] if first else (1, 2, 3),
        grammar=f"root ::= {'first' if first else question.value}",
    )


def advice(child: str, *tokens: int, outage: str | None = None) -> Advice:
    asked = tuple(consultation(q, tokens=n) for q, n in zip(Question, tokens, strict=False))
    return Advice(child=child, idea=None, experiment="", consultations=asked, outage=outage)


def made(id: str, program: Program | None, refusal: Refusal | None = None) -> Child:
    return Child(
        id=id,
        iteration=0,
        index=int(id.split(".")[1]),
        parent=INITIAL,
        operator="rewrite",
        completion="written by the implementer",
        completion_ids=(9,) * 50,
        logprobs=(-9.0,) * 50,
        finish_reason="stop",
        program=program,
        refusal=refusal,
        prompt_tokens=0,
        cached_prompt_tokens=0,
        llm_seconds=0.0,
    )


def verdict(candidate: str, score: float, program: str | None = None) -> Verdict:
    evaluation = Evaluation(score=score, failure=None)
    return Verdict(candidate=candidate, evaluation=evaluation, program=program)


def history_of(*events: Event, direction: Direction = Direction.MINIMISE) -> RunHistory:
    history = RunHistory(direction=direction)
    first = (Session(number=0, engine="0", fingerprint=""), verdict(INITIAL, 2.0, "x = 0\n"))
    for event in (*first, CALL, *events):
        history.fold(Recorded(session=0, elapsed=0.0, event=event))
    return history


def grouped(*events: Event, call: Call = CALL) -> Group | None:
    rewards = Rewards(kind="target", direction=Direction.MINIMISE, initial=2.0, target=1.0)
    return group_of(call, history_of(*events), rewards=rewards, answers_of=advised_answers)


PROGRAM = read("x = 1\n")
EVENTS: tuple[Event, ...] = (
    *(advice("0.0", 5, 3, 4), made("0.0", PROGRAM), verdict("0.0", 1.5)),
    *(advice("0.1", 6), made("0.1", None, Refusal.UNPARSED)),
    *(advice("0.2", 2, 2, 2, outage="status 500"), made("0.2", None, Refusal.UNPARSED)),
    *(advice("0.3", 4, 4, 4), made("0.3", PROGRAM, Refusal.BUDGET)),
)


def test_all_answers_of_a_chain_share_its_childs_reward() -> None:
    group = grouped(*EVENTS)
    assert group is not None
    assert (group.iteration, group.adapter) == (0, 7)
    first, second = group.members  # the endpoint failed for the third, nobody judged the fourth
    assert [len(each.token_ids) for each in first.answers] == [5, 3, 4]
    assert first.reward == 2.5
    assert PROGRAM is not None
    assert (first.key, first.is_new, first.gain) == (PROGRAM.key, True, 0.5)
    # A chain that came to nothing is told so, up to where it got.
    assert [len(each.token_ids) for each in second.answers] == [6]
    assert (second.reward, second.key, second.is_new, second.gain) == (-1.0, None, False, None)


def test_what_the_implementer_wrote_is_not_trained() -> None:
    group = grouped(*EVENTS)
    assert group is not None
    assert all(9 not in each.token_ids for one in group.members for each in one.answers)


def test_an_answer_has_the_prompt_and_the_grammar_that_it_was_sampled_from() -> None:
    first, second, third = answers_of(CALL, advice("0.0", 5, 3, 4))
    assert first == Answer(
        sampled_from=SampledFrom(prompt_ids=PROMPT, grammar="root ::= first"),
        temperature=0.75,
        token_ids=(0, 1, 2, 3, 4),
        logprobs=(-0.25,) * 5,
    )
    for each, question in ((second, Question.NOVELTY), (third, Question.SELECTION)):
        assert each.sampled_from.prompt_ids == (*PROMPT[:6], 1, 2, 3)
        assert each.sampled_from.grammar == f"root ::= {question.value}"


def test_siblings_share_what_their_first_answers_were_sampled_from() -> None:
    group = grouped(*EVENTS)
    assert group is not None
    assert len({one.answers[0].sampled_from for one in group.members}) == 1


def test_an_answer_that_was_ended_before_its_first_token_is_left_out() -> None:
    assert len(answers_of(CALL, advice("0.0", 5, 0))) == 1
    assert answers_of(CALL, advice("0.0", 0)) == ()


def test_without_what_it_was_sampled_from_there_is_no_group() -> None:
    unknown: Call = replace(CALL, sampled_from=None)
    assert grouped(*EVENTS, call=unknown) is None
    blind = replace(consultation(Question.IDEAS, tokens=3), logprobs=())
    assert answers_of(CALL, replace(advice("0.0"), consultations=(blind,))) == ()


def test_a_single_member_is_no_group() -> None:
    unjudged = made("0.1", None, Refusal.BUDGET)
    events = [unjudged if isinstance(e, Child) and e.id == "0.1" else e for e in EVENTS]
    assert grouped(*events) is None
