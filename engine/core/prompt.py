"""A prompt: the blocks that it consists of, and what its answers have to be like.

Does not cover composing one: ``engine.prompts``.
"""

from __future__ import annotations

import enum
import itertools
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap:
    """What an infill leaves out of its parent, for the model to write.

    The child is the parent with the characters ``start:end`` replaced by ``before``, what the
    model wrote, and ``after``.

    Attributes:
        whole_lines: the model writes statements; otherwise it writes an expression on one line.
    """

    start: int
    end: int
    before: str = ""
    after: str = ""
    whole_lines: bool = False


class Part(enum.StrEnum):
    """What a block of a prompt holds."""

    TASK = "task"  # the system message and the problem
    HISTORY = "history"  # an earlier program and its score
    PARENT = "parent"  # the program to change
    ANSWER = "answer"  # what the model itself wrote, in a transcript
    ASK = "ask"  # what is asked for; for an infill, the parent up to the gap


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A part of a prompt that was tokenised by itself, and is the same wherever it stands.

    Attributes:
        part: what it holds.
        text: for people.
        token_ids: the text as the model sees it.
        shows: ids of the programs that can be read in it, whole or as changes, in order.
    """

    part: Part
    text: str
    token_ids: tuple[int, ...]
    shows: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatFrame:
    """What a model's chat template puts round the messages.

    Attributes:
        opening: before the first user message; the system message stands in it.
        closing: between a user message and the answer.
        turn: between an answer and the next user message.
    """

    opening: str
    closing: str
    turn: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """One prompt for K children, and what the operator needs to read their completions.

    Attributes:
        blocks: what it consists of, in order.
        stop: strings that end a completion.
        max_tokens: the most tokens that a completion may have.
        banned: tokens that a completion may not hold; an infill bans the one that the parent
            goes on with, so that its children differ from it.
        grammar: EBNF that every completion has to follow; None for free text.
        schema: JSON schema, as text, that every completion has to follow; None for none.
        at_once: the most programs that one completion may hold, each of them a child. With 1, each
            child is a completion of its own.
        gap: what an infill leaves out of the parent; None for other operators.
    """

    blocks: tuple[Block, ...]
    stop: tuple[str, ...]
    max_tokens: int
    banned: tuple[int, ...] = ()
    grammar: str | None = None
    schema: str | None = None
    at_once: int = 1
    gap: Gap | None = None

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The prompt as the model sees it."""
        return tuple(itertools.chain.from_iterable(block.token_ids for block in self.blocks))

    @property
    def shows(self) -> tuple[str, ...]:
        """Ids of the programs that can be read in it, each once, in the order of their places."""
        return tuple(
            dict.fromkeys(itertools.chain.from_iterable(block.shows for block in self.blocks))
        )

    @property
    def text(self) -> str:
        """The prompt for people."""
        return "".join(block.text for block in self.blocks)
