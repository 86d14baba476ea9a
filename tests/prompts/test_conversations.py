"""Transcripts: a child is asked in the conversation that its parent came of."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

import pytest
from asked import (
    TRANSCRIPT,
    attempt,
    candidate,
    common,
    layout_problem,
    made,
    parts,
    program,
    proposal,
    turn,
)
from words import END, Words

from engine.core import Part, Problem, Prompt, Turn
from engine.prompts import Operator
from engine.settings import PromptSettings


@pytest.fixture(scope="module")
def problem() -> Problem:
    return layout_problem()


@dataclass
class Conversations:
    """Grows a population by asking an operator for children of chosen parents."""

    operators: dict[str, Operator]
    words: Words
    prompts: dict[int, Prompt] = field(default_factory=dict)
    lineages: dict[int, tuple[Turn, ...]] = field(default_factory=lambda: {0: ()})

    def child_of(
        self, parent: int, *, operator: str = "rewrite", failures: tuple[int, ...] = (),
        ends: bool = True,
    ) -> int:  # fmt: skip
        """Return the number of a new child; its answer was sampled in tokens of its own."""
        asked = replace(
            proposal(parent, operator=operator, lineage=self.lineages[parent]),
            failures=tuple(map(attempt, failures)),
        )
        number = len(self.lineages)
        prompt = self.operators[operator].compose(asked)
        answer = f"Here:\n```python\n{program(number)}```"
        # Not as the tokenizer would have cut it: letter by letter.
        ids = [each for letter in answer for each in self.words.encode(letter)]
        ids += self.words.encode(END) if ends else []
        self.prompts[number] = prompt
        self.lineages[number] = (
            *self.lineages[parent],
            Turn(
                candidate=candidate(parent),
                operator=operator,
                failures=asked.failures,
                answer=answer,
                answer_ids=tuple(ids),
            ),
        )
        return number

    def said(self, number: int) -> tuple[int, ...]:
        """Return the tokens in the cache once a child was sampled: its prompt and its answer."""
        return self.prompts[number].token_ids + self.lineages[number][-1].answer_ids


def conversations(
    problem: Problem, prompts: PromptSettings = TRANSCRIPT, *, max_model_len: int = 10_000
) -> Conversations:
    words = Words(max_model_len)
    return Conversations(operators=made(problem, prompts, words=words), words=words)


LONG = replace(TRANSCRIPT, history_tokens=5000)


@pytest.mark.parametrize("ends", [True, False])
def test_a_prompt_begins_with_the_parents_own_and_its_answer_token_by_token(
    problem: Problem, ends: bool
) -> None:
    grown = conversations(problem, LONG)
    number = 0
    for step in range(6):
        operator = ("rewrite", "diff")[step % 2]
        failures = (step, step + 1)[: step % 3]
        child = grown.child_of(number, operator=operator, failures=failures, ends=ends)
        if number:
            said = grown.said(number)
            assert grown.prompts[child].token_ids[: len(said)] == said
        number = child
    text = grown.words.decode(grown.prompts[number].token_ids)
    assert text.count(END) == 1 + 2 * 5 + 1  # no answer was ended twice
    for each in range(1, number):
        assert f"{program(each)}```{END}" in text
        assert f"That program has the score {each / 7!r}.\n" in text


def test_siblings_and_cousins_share_all_that_was_said_before_them(problem: Problem) -> None:
    grown = conversations(problem, LONG)
    one, other = (grown.child_of(0) for _ in range(2))
    left, right = grown.child_of(one), grown.child_of(other)
    prompts = grown.prompts
    assert prompts[one] == prompts[other]
    shared = common(prompts[left].token_ids, prompts[right].token_ids)
    assert shared >= len(prompts[one].token_ids)


def test_a_conversation_that_outgrows_its_budget_begins_anew_and_its_heirs_keep_that_start(
    problem: Problem,
) -> None:
    grown = conversations(problem, replace(TRANSCRIPT, history_tokens=300, growth_tokens=60))
    number, starts = 0, []
    for _ in range(40):
        child = grown.child_of(number)
        prompt = grown.prompts[child]
        said = grown.said(number) if number else ()
        if prompt.token_ids[: len(said)] != said:
            assert prompt.text.count("# Current program") == 1
            assert prompt.blocks[1].text.startswith(f"# Current program, score {number / 7!r}\n")
            assert Part.ANSWER not in {block.part for block in prompt.blocks}
            starts.append(number)
        elif starts:
            assert f"# Current program, score {starts[-1] / 7!r}\n" in prompt.blocks[1].text
        spoken = [
            len(block.token_ids)
            for block in prompt.blocks[1:-2]  # without the task and the request
        ]
        assert sum(spoken) <= 360
        number = child
    assert 5 < len(starts) < 30  # once in several iterations
    assert len({b - a for a, b in itertools.pairwise(starts)}) == 1  # the steps are alike here


def test_branches_of_one_conversation_begin_anew_where_each_has_to(problem: Problem) -> None:
    grown = conversations(problem, replace(TRANSCRIPT, history_tokens=300, growth_tokens=60))
    numbers = [0]
    for _ in range(12):
        numbers.append(grown.child_of(numbers[-1]))
    # Asked again for another child of each: the same prompt as the first time.
    for parent, child in itertools.pairwise(numbers):
        assert grown.prompts[grown.child_of(parent)] == grown.prompts[child]


def test_an_answer_of_another_kind_begins_a_conversation_anew(problem: Problem) -> None:
    grown = conversations(problem, LONG)
    first = grown.child_of(0)
    filled = grown.child_of(first, operator="infill")
    asked = grown.child_of(filled)
    prompt = grown.prompts[asked]
    assert parts(prompt) == ["task", "parent", "ask"]
    assert f"score {filled / 7!r}\n" in prompt.blocks[1].text
    heir = grown.prompts[grown.child_of(asked, operator="diff")]
    said = grown.said(asked)
    assert heir.token_ids[: len(said)] == said


def test_an_infill_goes_on_with_the_text_of_its_lineage(problem: Problem) -> None:
    grown = conversations(problem, LONG)
    number = 0
    for operator in ("infill", "rewrite", "infill", "infill"):
        number = grown.child_of(number, operator=operator)
    prompt = grown.prompts[number]
    assert parts(prompt) == ["task", "parent", "answer", "ask"]
    scores = [prompt.text.index(f"# score {each / 7!r}\n") for each in range(number)]
    programs = [prompt.text.index(program(each)) for each in range(number)]
    # The first score stands before its program, the others behind it: they are known later.
    assert [scores[0], *programs] == sorted([scores[0], *programs])
    assert all(p < s for p, s in zip(programs[1:], scores[1:], strict=True))
    one = grown.child_of(0, operator="infill")
    shown = grown.prompts[one]
    # Up to the gap the child has the parent's own text, so its prompt goes on in the same tokens.
    longer = grown.operators["infill"].compose(
        replace(
            proposal(0, operator="infill", lineage=grown.lineages[one]),
            parent=replace(candidate(9), program=program(0)),
        )
    )
    assert common(shown.token_ids, longer.token_ids) >= len(shown.token_ids) - 1
    assert longer.text.startswith(shown.text)


def test_an_answer_that_ends_otherwise_is_kept_as_it_was_sampled(problem: Problem) -> None:
    words = Words()
    operator = made(problem, LONG, words=words)["rewrite"]
    (end,) = words.encode(END)
    for ids in ((5, 6), (5, 6, end), (end,), (), (end, end)):
        said = replace(turn(candidate(0), answer="five six"), answer_ids=ids)
        prompt = operator.compose(proposal(1, lineage=[said]))
        start = operator.compose(proposal(0)).token_ids
        assert prompt.token_ids[: len(start) + len(ids)] == start + ids
        after = prompt.token_ids[len(start) + len(ids) - (ids[-1:] == (end,)) :]
        assert words.decode(after[:3]) == f"{END}\n<user>"


def test_a_conversation_never_outgrows_the_context(problem: Problem) -> None:
    """Its budget is cut to what fits, so that nothing has to be left out of its start."""
    grown = conversations(problem, replace(TRANSCRIPT, history_tokens=10**6), max_model_len=900)
    number, anew = 0, 0
    for _ in range(40):
        child = grown.child_of(number)
        prompt = grown.prompts[child]
        assert len(prompt.token_ids) + prompt.max_tokens <= 900
        said = grown.said(number) if number else ()
        anew += prompt.token_ids[: len(said)] != said
        number = child
    assert 3 < anew < 20
