"""Layouts: how much of a prompt stands where an earlier one has the same tokens."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from asked import (
    CLASSIC,
    LAYOUTS,
    NAMES,
    TRANSCRIPT,
    attempt,
    before,
    candidate,
    common,
    layout_problem,
    lineage,
    made,
    parts,
    program,
    proposal,
    turn,
    waiting,
)
from words import STABLE, Words

from engine.core import Part, Problem, UserError
from engine.settings import PromptSettings


@pytest.fixture(scope="module")
def problem() -> Problem:
    return layout_problem()


# What all have in common.


@pytest.mark.parametrize("name", NAMES)
def test_all_layouts_begin_with_the_same_task(problem: Problem, name: str) -> None:
    words = Words()
    tasks = set()
    for layout, parent, turns in itertools.product(LAYOUTS, (1, 2), ([], lineage(2))):
        operator = made(problem, replace(STABLE, layout=layout), words=words)[name]
        prompt = operator.compose(proposal(parent, 4, 5, operator=name, lineage=turns))
        tasks.add(prompt.blocks[0])
        assert [block.part for block in prompt.blocks].count(Part.TASK) == 1
    (task,) = tasks
    assert task.part is Part.TASK and "Make f good. ½" in task.text


def test_the_chat_operators_share_all_but_the_request(problem: Problem) -> None:
    for prompts in (CLASSIC, STABLE, TRANSCRIPT):
        operators = made(problem, prompts, words=Words())
        one, other = (
            operators[name].compose(proposal(3, 4, 5, operator=name, lineage=lineage(3)))
            for name in ("rewrite", "diff")
        )
        size = len(one.blocks) - 2  # the request, and the end of the message
        assert one.blocks[:size] == other.blocks[:size]
        assert one.blocks[size].part is Part.ASK and one.blocks[size] != other.blocks[size]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prompts", [CLASSIC, STABLE, TRANSCRIPT])
def test_scores_keep_all_their_digits(problem: Problem, prompts: PromptSettings, name: str) -> None:
    operator = made(problem, prompts)[name]
    close = [
        replace(candidate(number), score=score)
        for number, score in enumerate((0.1 + 0.2, 0.3, 1e-300, -123456789.12345679))
    ]
    asked = replace(proposal(0), parent=close[0], history=tuple(close))
    text = operator.compose(asked).text
    if prompts.layout == "transcript":
        turns = tuple(turn(each, answer="x") for each in close[1:])
        text = operator.compose(replace(asked, lineage=turns)).text
    for each in close:
        assert f"score {each.score!r}\n" in text or f"score {each.score!r}." in text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prompts", [CLASSIC, STABLE, TRANSCRIPT])
def test_a_prompt_is_its_blocks_and_nothing_that_changes_by_itself(
    problem: Problem, prompts: PromptSettings, name: str
) -> None:
    words = Words()
    asked = proposal(2, 2, 3, 4, operator=name, lineage=lineage(2))
    operator = made(problem, prompts, words=words)[name]
    prompt = operator.compose(asked)
    assert operator.compose(asked) == prompt
    assert made(problem, prompts, words=words)[name].compose(asked) == prompt
    assert operator.compose(replace(asked, iteration=999, compactions=7, k=1)) == prompt
    assert prompt.token_ids == tuple(i for block in prompt.blocks for i in block.token_ids)
    assert prompt.text == "".join(block.text for block in prompt.blocks)
    sampled = [block for block in prompt.blocks if block.part is Part.ANSWER and name != "infill"]
    for block in prompt.blocks:
        if block not in sampled:
            assert words.decode(block.token_ids) == block.text


# Stable.


@pytest.mark.parametrize("name", NAMES)
def test_what_is_appended_leaves_all_tokens_before_it_as_they_were(
    problem: Problem, name: str
) -> None:
    operator = made(problem, STABLE)[name]
    history: tuple[int, ...] = ()
    earlier = operator.compose(proposal(1, operator=name))
    for number in range(10, 16):
        history = (*history, number)
        prompt = operator.compose(proposal(number, *history, operator=name))
        shared = before(earlier, Part.ASK if name == "infill" else Part.PARENT)
        assert shared > before(earlier, Part.HISTORY) or number == 10
        assert common(earlier.token_ids, prompt.token_ids) >= shared
        earlier = prompt


@pytest.mark.parametrize("name", NAMES)
def test_another_parent_changes_nothing_before_it(problem: Problem, name: str) -> None:
    operator = made(problem, STABLE)[name]
    one, other = (operator.compose(proposal(number, 4, 5, 6, operator=name)) for number in (1, 2))
    shared = before(one, Part.ASK if name == "infill" else Part.PARENT)
    assert parts(one)[:2] == ["task", "history"]
    assert before(other, Part.ASK if name == "infill" else Part.PARENT) == shared
    assert shared <= common(one.token_ids, other.token_ids) < len(one.token_ids)


def test_an_infill_shows_its_parent_once_in_a_stable_layout(problem: Problem) -> None:
    prompt = made(problem, STABLE)["infill"].compose(proposal(1, 4, operator="infill"))
    assert parts(prompt) == ["task", "history", "ask"]
    prompt = made(problem, CLASSIC)["infill"].compose(proposal(1, 4, operator="infill"))
    assert parts(prompt) == ["task", "parent", "history", "ask"]


# Pending programs.


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prompts", [CLASSIC, STABLE, TRANSCRIPT])
def test_a_prompt_shows_each_pending_program_once_and_says_that_its_score_is(
    problem: Problem, prompts: PromptSettings, name: str
) -> None:
    operator = made(problem, prompts)[name]
    asked = proposal(1, 4, operator=name)
    none, prompt = operator.compose(asked), operator.compose(replace(asked, pending=waiting(8, 9)))
    blocks = [block for block in prompt.blocks if "score pending\n" in block.text]
    assert [block.part for block in blocks] == [Part.HISTORY] * 2
    for number, block in zip((8, 9), blocks, strict=True):
        assert program(number).strip() in block.text
        assert name == "infill" or f"# Program c{number}, score pending\n" in block.text
    left = tuple(block for block in prompt.blocks if block not in blocks)
    assert left == none.blocks  # and nothing else is another
    assert (prompt.gap, prompt.banned, prompt.grammar) == (none.gap, none.banned, none.grammar)


@pytest.mark.parametrize("name", NAMES)
def test_pending_programs_leave_the_history_and_the_conversation_in_the_cache(
    problem: Problem, name: str
) -> None:
    for prompts, kept in ((STABLE, Part.HISTORY), (TRANSCRIPT, Part.ANSWER)):
        operator = made(problem, prompts)[name]
        turns = lineage(4, 5)
        asked = proposal(1, 4, 5, operator=name, lineage=turns)
        one = operator.compose(asked)
        other = operator.compose(replace(asked, pending=waiting(8, 9)))
        after = max(i for i, block in enumerate(one.blocks) if block.part is kept) + 1
        assert other.blocks[:after] == one.blocks[:after]


@pytest.mark.parametrize("name", NAMES)
def test_a_program_that_joins_the_history_differs_in_its_score_alone(
    problem: Problem, name: str
) -> None:
    words = Words()
    operator = made(problem, STABLE, words=words)[name]
    out = operator.compose(replace(proposal(1, 4, operator=name), pending=waiting(8)))
    known = operator.compose(proposal(1, 4, 8, operator=name))
    (one,) = (block for block in out.blocks if "pending" in block.text)
    other = known.blocks[out.blocks.index(one)]
    assert other.text == one.text.replace("pending", repr(8 / 7))
    start = common(one.token_ids, other.token_ids)
    end = common(one.token_ids[::-1], other.token_ids[::-1])
    assert start + 1 + end == len(one.token_ids)  # " pending"
    assert common(out.token_ids, known.token_ids) == start + len(out.blocks[0].token_ids) + len(
        out.blocks[1].token_ids
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_prompt_that_is_too_long_loses_failures_then_the_last_of_the_pending(
    problem: Problem, layout: str, name: str
) -> None:
    prompts = replace(STABLE, layout=layout)
    asked = replace(
        proposal(1, 4, 5, operator=name),
        failures=(attempt(1), attempt(2)),
        pending=waiting(7, 8, 9),
    )
    full = made(problem, prompts)[name].compose(asked)
    size, told = len(full.token_ids) + full.max_tokens, []
    for length in range(size, size - 500, -1):
        try:
            prompt = made(problem, prompts, words=Words(length))[name].compose(asked)
        except UserError:
            break
        assert len(prompt.token_ids) + prompt.max_tokens <= length
        numbers = [each for each in (4, 5, 7, 8, 9) if program(each).strip() in prompt.text]
        told.append((prompt.text.count("late "), *numbers))
    steps = [each for each, _ in itertools.groupby(told)]
    from_the_end = [(4, 5), (4,), ()]
    history = {
        "classic": [(4, 5), (5,), ()],
        "stable": from_the_end,
        "transcript": [()],
        "ancestors": from_the_end,
    }
    first = history[layout][0]
    late = [2, 1, 0] if name != "infill" else [0]
    assert steps == [
        *((count, *first, 7, 8, 9) for count in late),
        *((0, *first, *left) for left in ((7, 8), (7,))),
        *((0, *left) for left in history[layout]),
    ]


# What is left out.


def test_less_is_shown_from_the_end_so_that_the_prefix_stays(problem: Problem) -> None:
    asked = replace(proposal(1, 4, 5, 6, 7), failures=(attempt(1), attempt(2)))
    full = made(problem, STABLE)["rewrite"].compose(asked)
    size, sizes = len(full.token_ids), []
    for room in range(size, before(full, Part.HISTORY), -1):
        operator = made(problem, STABLE, words=Words(room + 100))["rewrite"]
        try:
            prompt = operator.compose(asked)
        except UserError as error:
            assert f"candidate c1 have {sizes[-1]} tokens" in str(error)
            break
        assert len(prompt.token_ids) <= room
        history = before(prompt, Part.PARENT)
        assert common(prompt.token_ids, full.token_ids) >= history
        sizes.append(len(prompt.token_ids))
    assert len(set(sizes)) == 1 + 2 + 4  # all, two failures less, four programs less
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prompts", [CLASSIC, STABLE, TRANSCRIPT])
def test_the_longest_parent_fits_in_every_layout(
    problem: Problem, prompts: PromptSettings, name: str
) -> None:
    words = Words(max_model_len=1200)
    operator = made(problem, prompts, words=words)[name]
    long = "def f(x):\n"
    while len(words.encode(long + "    x = x + 1\n")) <= operator.longest_parent:
        long += "    x = x + 1\n"
    parent = replace(candidate(1), program=long, score=-1.2345678901234567e-300)
    turns = [turn(parent, answer="a b c", failures=(1, 2)) for _ in range(4)]
    for seed in range(30):
        asked = replace(
            proposal(1, *range(3, 40), operator=name, lineage=turns),
            parent=parent,
            failures=tuple(map(attempt, range(5))),
            seed=seed,
        )
        prompt = operator.compose(asked)
        assert len(prompt.token_ids) + prompt.max_tokens <= 1200
