"""What advisor and implementer are asked: prompts that begin alike and fit the model."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scripted import settings_of, small_problem
from words import END, STABLE, Words

from engine.advisor import AdvisedOperator, advised
from engine.advisor.answers import Draft, Judgement, Selection
from engine.core import Candidate, Generation, Idea, Novelty, Prompt, Proposal, UserError
from engine.prompts import make_operators
from engine.store import Experiment, Outcome, TriedIdea

PARENT = Candidate(id="p", program="def f(x):\n    return x\n", score=0.5)
HISTORY = tuple(
    Candidate(id=f"h{n}", program=f"def f(x):\n    return x + {n}\n", score=0.1) for n in range(9)
)
DRAFTS = tuple(
    Draft(hypothesis=f"Hypothesis {name} holds.", reasoning=f"Reason {name}.") for name in "abc"
)
JUDGEMENTS = (
    Judgement(novelty=Novelty.NEW),
    Judgement(novelty=Novelty.REFINES, number=2),
    Judgement(novelty=Novelty.REPEATS, number=1),
)


def operator_of(
    name: str = "rewrite", *, length: int = 4000, max_tokens: int = 300, layout: str = "stable"
) -> AdvisedOperator:
    prompts = replace(STABLE, layout=layout)
    operators = make_operators(
        [name],
        problem=small_problem(),
        tokenizer=Words(max_model_len=length),
        max_tokens=max_tokens,
        prompts=prompts,
    )
    return advised(operators, settings_of().advisor)[name]


def proposal(parent: Candidate = PARENT) -> Proposal:
    return Proposal(iteration=3, parent=parent, history=HISTORY, operator="rewrite", k=4, seed=1)


def known(count: int) -> list[TriedIdea]:
    experiment = Experiment(
        child="0.0", description="Add noise.", outcome=Outcome(score=0.25, gain=-0.25)
    )
    return [
        TriedIdea(
            idea=Idea(
                child="0.0",
                number=number,
                hypothesis=f"Old hypothesis {number}.",
                reasoning="Why not.",
                novelty=Novelty.NEW,
            ),
            experiments=(experiment,),
        )
        for number in range(1, count + 1)
    ]


def all_prompts(operator: AdvisedOperator, *, ideas: int = 3) -> list[Prompt]:
    """Return the four prompts of a chain."""
    situation = operator.situation(proposal(), ideas=known(ideas))
    selection = Selection(number=ideas + 1, experiment="Take the mean of two.")
    return [
        operator.ideas(situation),
        operator.novelty(situation, DRAFTS),
        operator.selection(situation, DRAFTS, JUDGEMENTS),
        operator.implementation(
            situation,
            hypothesis=DRAFTS[0].hypothesis,
            reasoning=DRAFTS[0].reasoning,
            selection=selection,
        ),
    ]


@pytest.mark.parametrize("layout", ["stable", "classic"])
def test_all_begin_with_the_same_tokens_and_the_advisors_with_the_same_repository(
    layout: str,
) -> None:
    operator = operator_of(layout=layout)
    situation = operator.situation(proposal(), ideas=known(3))
    start = sum(len(block.token_ids) for block in situation.start)
    *advisors, implementers = all_prompts(operator)
    first = advisors[0].token_ids
    for prompt in advisors:
        assert prompt.token_ids[: situation.shared] == first[: situation.shared]
        assert prompt.text.endswith(f"{END}\n<model>")
    assert implementers.token_ids[:start] == first[:start]
    assert "return x + 8" in implementers.text  # the other programs
    assert start > 100 and situation.shared > start + 30
    plain = operator.base.compose(proposal())
    assert plain.token_ids[:start] == first[:start]


def test_the_advisor_sees_what_came_of_ideas_and_the_implementer_does_not() -> None:
    *advisors, implementers = all_prompts(operator_of())
    for prompt in advisors:
        assert (
            "## Idea 2\nOld hypothesis 2.\n- Add noise. -> score 0.25, worse by 0.25" in prompt.text
        )
    assert "Old hypothesis" not in implementers.text
    assert "Hypothesis a holds." in implementers.text
    assert "Take the mean of two." in implementers.text
    assert "Hypothesis b" not in implementers.text


def test_new_ideas_are_numbered_behind_the_known_ones() -> None:
    _, novelty, selection, _ = all_prompts(operator_of())
    assert "## Idea 4\nHypothesis a holds.\nReasoning: Reason a." in novelty.text
    assert "## Idea 5 (refines idea 2)\nHypothesis b" in selection.text
    assert "## Idea 6 (repeats idea 1)\nHypothesis c" in selection.text


def test_what_repeats_another_idea_can_not_be_selected() -> None:
    operator = operator_of()
    situation = operator.situation(proposal(), ideas=known(3))
    assert operator.selectable(situation, JUDGEMENTS) == (1, 2, 3, 4, 5)
    grammar = all_prompts(operator)[2].grammar
    assert grammar is not None and 'number ::= "1" | "2" | "3" | "4" | "5"\n' in grammar


def test_the_implementer_is_asked_as_its_operator_asks() -> None:
    assert "whole program in one ```python block" in all_prompts(operator_of("rewrite"))[3].text
    assert "<<<<<<< SEARCH" in all_prompts(operator_of("diff"))[3].text
    for prompt in all_prompts(operator_of())[:3]:
        assert prompt.grammar is not None and prompt.max_tokens == 256
    last = all_prompts(operator_of())[3]
    assert (last.grammar, last.max_tokens) == (None, 300)


@pytest.mark.parametrize("implementer", ["model", "endpoint"])
def test_an_endpoint_answers_without_the_thought_that_the_models_own_answers_begin_with(
    implementer: str,
) -> None:
    operator = operator_of()
    service = replace(operator.settings.endpoint, url="http://127.0.0.1/v1", model="m")
    operator.settings = replace(operator.settings, implementer=implementer, endpoint=service)
    prompt = all_prompts(operator)[0]
    thinking = replace(prompt, blocks=(*prompt.blocks, replace(prompt.blocks[-1], text="<think>")))
    answer = Generation(
        index=0,
        text="```python\ndef f(x):\n    return 3\n```",
        token_ids=(),
        finish_reason="stop",
        prompt_tokens=0,
        cached_prompt_tokens=0,
        llm_seconds=0.0,
    )
    (found,) = operator.parsing(parent=PARENT, prompt=thinking, generation=answer)()
    assert (found.program is not None) == (implementer == "endpoint")


def test_an_endpoint_gets_the_same_words_as_messages() -> None:
    operator = operator_of()
    prompt = all_prompts(operator)[3]
    system, user = operator.messages(prompt)
    frame = operator.tokenizer.chat_frame(system=system["content"])
    assert frame.opening + user["content"] + frame.closing == prompt.text


def test_the_longest_parent_fits_all_prompts_with_the_longest_answers() -> None:
    for length in (2000, 4000):
        operator = operator_of(length=length)
        longest = operator.longest_parent
        assert longest > 100
        program = "y" + " y" * (longest - 1)
        assert len(operator.tokenizer.encode(program)) == longest
        parent = replace(PARENT, program=program, score=1 / 3)
        endless = "very " * 3000
        ideas = [replace(each, idea=replace(each.idea, hypothesis=endless)) for each in known(30)]
        drafts = tuple(Draft(hypothesis=endless, reasoning=endless) for _ in range(3))
        situation = operator.situation(proposal(parent), ideas=ideas)
        selection = Selection(number=1, experiment=endless)
        prompts = (
            (operator.ideas(situation), 256),
            (operator.novelty(situation, drafts), 256),
            (operator.selection(situation, drafts, JUDGEMENTS), 256),
            (
                operator.implementation(
                    situation, hypothesis=endless, reasoning=endless, selection=selection
                ),
                300,
            ),
        )
        for prompt, answer in prompts:
            assert prompt.max_tokens == answer
            assert len(prompt.token_ids) + answer <= length


def test_a_parent_that_fits_no_prompt_is_refused_in_a_line() -> None:
    operator = operator_of(length=2000)
    parent = replace(PARENT, program="y = 1\n" * 2000)
    with pytest.raises(UserError, match=r"raise model\.max_model_len"):
        operator.situation(proposal(parent), ideas=())
