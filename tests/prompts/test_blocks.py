"""Blocks: tokenised once, and the same wherever they stand."""

from __future__ import annotations

from words import Words

from engine.core import Part
from engine.prompts import blocks as module
from engine.prompts.blocks import Blocks


def test_a_text_is_encoded_once_whatever_it_is_a_part_of() -> None:
    words = Words()
    blocks = Blocks(words)
    made = [blocks.make(part, "def f(x): ½") for part in (*Part, *Part)]
    assert words.encoded == {"def f(x): ½": 1}
    assert {block.token_ids for block in made} == {tuple(Words().encode("def f(x): ½"))}
    assert [block.part for block in made] == [*Part, *Part]
    assert {block.text for block in made} == {"def f(x): ½"}


def test_an_empty_text_is_a_block_without_tokens() -> None:
    assert Blocks(Words()).make(Part.ASK, "").token_ids == ()


def test_what_was_not_used_for_long_is_forgotten() -> None:
    words = Words()
    blocks = Blocks(words)
    first = blocks.make(Part.TASK, "first")
    for number in range(module._KEPT - 1):
        blocks.make(Part.HISTORY, f"x{number}")
    assert blocks.make(Part.TASK, "first") == first  # used again
    for number in range(module._KEPT - 1):
        blocks.make(Part.HISTORY, f"y{number}")
    blocks.make(Part.TASK, "first")
    assert words.encoded["first"] == 1
    assert blocks.make(Part.HISTORY, "x0").token_ids and words.encoded["x0"] == 2


def test_a_block_can_not_be_changed_by_the_tokenizer() -> None:
    shared = [1, 2, 3]

    class Sharing(Words):
        def encode(self, text: str) -> list[int]:
            return shared

    block = Blocks(Sharing()).make(Part.TASK, "a")
    shared.append(4)
    assert block.token_ids == (1, 2, 3)
