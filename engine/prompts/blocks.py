"""Blocks of prompts, each tokenised once.

A prompt is a list of blocks. A block has the same tokens wherever it stands. So two prompts that
begin with the same blocks begin with the same tokens, which is what the prefix cache matches.

Covers: tokenising and keeping. Does not cover the order of blocks (``layouts.py``) or what they
say (``chat.py``, ``infill.py``).
"""

from __future__ import annotations

import functools

from engine.core import Block, Part
from engine.prompts.operator import Tokenizer

_KEPT = 4096  # the most recently used blocks; a prompt has tens


class Blocks:
    """Makes blocks of text with one model's tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokens = functools.lru_cache(maxsize=_KEPT)(
            lambda text: tuple(tokenizer.encode(text))
        )

    def make(self, part: Part, text: str, *, shows: tuple[str, ...] = ()) -> Block:
        """Return the block that holds ``text``, in which the programs ``shows`` can be read."""
        return Block(part=part, text=text, token_ids=self._tokens(text), shows=shows)
