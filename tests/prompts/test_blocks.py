"""Blocks: tokenised once, and the same wherever they stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from words import STABLE, Words

from engine.core import Part, Problem
from engine.problem import load_problem, shipped
from engine.prompts import Operator
from engine.prompts import operator as module


@pytest.fixture(scope="module")
def problem() -> Problem:
    return load_problem(Path(shipped()["signal"]))


def asking(problem: Problem, words: Words) -> Operator:
    return Operator(problem=problem, tokenizer=words, max_tokens=1, prompts=STABLE)


def test_a_text_is_encoded_once_whatever_it_is_a_part_of(problem: Problem) -> None:
    words = Words()
    blocks = asking(problem, words)
    made = [blocks.block(part, "def f(x): ½") for part in (*Part, *Part)]
    assert words.encoded == {"def f(x): ½": 1}
    assert {block.token_ids for block in made} == {tuple(Words().encode("def f(x): ½"))}
    assert [block.part for block in made] == [*Part, *Part]
    assert {block.text for block in made} == {"def f(x): ½"}


def test_an_empty_text_is_a_block_without_tokens(problem: Problem) -> None:
    assert asking(problem, Words()).block(Part.ASK, "").token_ids == ()


def test_what_was_not_used_for_long_is_forgotten(problem: Problem) -> None:
    words = Words()
    blocks = asking(problem, words)
    first = blocks.block(Part.TASK, "first")
    for number in range(module._KEPT - 1):
        blocks.block(Part.HISTORY, f"x{number}")
    assert blocks.block(Part.TASK, "first") == first  # used again
    for number in range(module._KEPT - 1):
        blocks.block(Part.HISTORY, f"y{number}")
    blocks.block(Part.TASK, "first")
    assert words.encoded["first"] == 1
    assert blocks.block(Part.HISTORY, "x0").token_ids and words.encoded["x0"] == 2


def test_a_block_can_not_be_changed_by_the_tokenizer(problem: Problem) -> None:
    shared = [1, 2, 3]

    class Sharing(Words):
        def encode(self, text: str, *, plain: bool = False) -> list[int]:
            return shared

    block = asking(problem, Sharing()).block(Part.TASK, "a")
    shared.append(4)
    assert block.token_ids == (1, 2, 3)
