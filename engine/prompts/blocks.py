"""Blocks of prompts, each tokenised once.

A prompt is a list of blocks. A block has the same tokens wherever it stands. So two prompts that
begin with the same blocks begin with the same tokens, which is what the prefix cache matches.

Blocks can be filled up so that a prompt ends one token into a block of the prefix cache. vLLM
caches whole blocks. Each of the K children computes the end of the prompt that fills no block: half
a block on average, which for short prompts is most of what is computed at all. Empty lines before
the last line reduce that to one token, for all children but the first. They stand before the part
that changes most, so everything before them is cached as without them.

Covers: tokenising, keeping, filling up. Does not cover the order of blocks (``layouts.py``) or what
they say (``chat.py``, ``infill.py``).
"""

import functools
from collections.abc import Sequence
from typing import Protocol

from engine.core import Block, ChatFrame, Part

_KEPT = 4096  # the most recently used blocks; a prompt has tens
_FILLER = "\n"


class Tokenizer(Protocol):
    """What prompts need to know of a model."""

    @property
    def max_model_len(self) -> int:
        """The longest prompt plus completion, in tokens."""

    @property
    def block_size(self) -> int:
        """Tokens of a block of the prefix cache."""

    def encode(self, text: str) -> list[int]:
        """Return the token ids of ``text``, with no token added."""

    def chat_frame(self, *, system: str) -> ChatFrame:
        """Return what the model's chat template puts round the messages of a conversation."""


class Blocks:
    """Makes blocks of text with one model's tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokens = functools.lru_cache(maxsize=_KEPT)(
            lambda text: tuple(tokenizer.encode(text))
        )

    def make(self, part: Part, text: str, *, shows: tuple[str, ...] = ()) -> Block:
        """Return the block that holds ``text``, in which the programs ``shows`` can be read."""
        return Block(part=part, text=text, token_ids=self._tokens(text), shows=shows)


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
