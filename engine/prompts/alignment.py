"""Filling a prompt up so that it ends one token into a block of the prefix cache.

vLLM caches whole blocks. The end of a prompt that fills no block is computed by each of the K
children, on average half a block, and for short prompts that is most of what is computed at all.
With empty lines before the last line it is one token, for all children but the first.

The filling stands before what changes most, so that everything before it is cached as ever. Not for
transcripts: a request is repeated there behind another length of text, so it would have to be
repeated with its filling.
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
