"""Filling a prompt up so that it ends one token into a block of the prefix cache.

vLLM caches whole blocks. Each of the K children computes the end of the prompt that fills no block:
half a block on average, which for short prompts is most of what is computed at all. Empty lines
before the last line reduce that to one token, for all children but the first.

The empty lines stand before the part that changes most, so everything before them is cached as
without them. Transcripts are not filled up: a later prompt repeats a request behind a text of
another length, and would have to repeat its empty lines too.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.core import Block, Part
from engine.prompts.operator import Tokenizer
from engine.settings import PromptSettings

_FILLER = "\n"


def aligns(settings: PromptSettings) -> bool:
    """Return whether prompts are to be filled up."""
    return settings.align and settings.layout != "transcript"


def aligned(blocks: Sequence[Block], tokenizer: Tokenizer, *, room: int) -> tuple[Block, ...]:
    """Return the blocks with empty lines before the last one, as many as align its end.

    Where that takes more than ``room`` tokens, or an empty line is no token of its own, the blocks
    are returned as they are.
    """
    size = sum(len(block.token_ids) for block in blocks)
    count = (1 - size) % tokenizer.block_size
    filler = tuple(tokenizer.encode(_FILLER))
    if not count or len(filler) != 1 or size + count > room:
        return tuple(blocks)
    filling = Block(part=Part.ASK, text=_FILLER * count, token_ids=filler * count)
    return (*blocks[:-1], filling, blocks[-1])
