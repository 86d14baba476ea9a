"""Prompts filled up to a block of the prefix cache: the last block has one token."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from words import STABLE, Words

from engine.core import Block, Candidate, Part, Problem, Proposal
from engine.problem import load_problem, shipped
from engine.prompts import OPERATORS, make_operators
from engine.prompts.layouts import aligned

PROGRAM = "def f(x):\n    y = x + 1\n    return y\n"


@pytest.fixture(scope="module")
def problem() -> Problem:
    return replace(load_problem(Path(shipped()["signal"])), statement="Make f good. ½")


def block(part: Part, size: int) -> Block:
    return Block(part=part, text="x" * size, token_ids=(9,) * size)


@given(st.integers(0, 100), st.integers(1, 40), st.integers(0, 40), st.sampled_from([1, 16, 32]))
def test_the_end_is_one_token_into_a_block_wherever_there_is_room(
    first: int, last: int, more: int, block_size: int
) -> None:
    words = Words()
    words.block_size = block_size
    blocks = (block(Part.TASK, first), block(Part.ASK, last))
    room = first + last + more
    filled = aligned(blocks, words, room=room)
    size = sum(len(each.token_ids) for each in filled)
    assert filled[0] == blocks[0] and filled[-1] == blocks[-1]
    assert size <= room
    assert size % block_size == 1 % block_size or filled == blocks
    if more >= block_size:
        assert size % block_size == 1 % block_size
    assert size - first - last < block_size
    if filled != blocks:
        assert aligned(filled, words, room=room) == filled


@pytest.mark.parametrize("name", ["infill", "rewrite", "diff"])
@pytest.mark.parametrize("layout", ["classic", "stable"])
def test_an_aligned_prompt_says_the_same(problem: Problem, layout: str, name: str) -> None:
    words = Words()
    prompts = replace(STABLE, layout=layout)
    plain, filled = (
        make_operators(
            OPERATORS.names, problem=problem, tokenizer=words, max_tokens=50, prompts=each
        )[name]
        for each in (prompts, replace(prompts, align=True))
    )
    parent = Candidate(id="p", program=PROGRAM, score=1 / 3)
    other = Candidate(id="o", program=PROGRAM + "# other\n", score=2 / 3)
    for seed in range(30):
        asked = Proposal(
            iteration=0, parent=parent, history=(other,), operator=name, k=8, seed=seed
        )
        one, same = filled.compose(asked), plain.compose(asked)
        assert len(one.token_ids) % words.block_size == 1
        assert (one.gap, one.grammar, one.banned) == (same.gap, same.grammar, same.banned)
        empty = [part.text for part in one.blocks if part.text and not part.text.strip("\n")]
        assert len(empty) <= 1
        rest = "".join(part.text for part in one.blocks if part.text not in empty)
        assert rest == same.text
        assert words.decode(one.token_ids) == one.text


@pytest.mark.parametrize("name", ["infill", "rewrite", "diff"])
def test_a_transcript_is_never_filled_up(problem: Problem, name: str) -> None:
    parent = Candidate(id="p", program=PROGRAM, score=0.5)
    asked = Proposal(iteration=0, parent=parent, history=(), operator=name, k=8, seed=1)
    plain, told_to = (
        make_operators(
            OPERATORS.names,
            problem=problem,
            tokenizer=Words(),
            max_tokens=50,
            prompts=replace(STABLE, layout="transcript", align=align),
        )[name]
        for align in (False, True)
    )
    assert told_to.compose(asked) == plain.compose(asked)
