"""A prompt: the blocks that it consists of, what its answers have to be like, and an answer.

Does not cover composing one: ``engine.prompts``.
"""

import enum
import itertools
from dataclasses import dataclass

from engine.core.program import Program


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

    @property
    def ending(self) -> str:
        """The text of its last block; empty where it has none."""
        return self.blocks[-1].text if self.blocks else ""


GIVEN_UP = "error"
"""Why a completion ended that the engine could not make; vLLM has the same word for it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Generation:
    """One finished completion, with vLLM's own token counts.

    Attributes:
        index: which of the K children it is.
        text: the completion.
        token_ids: its tokens as sampled, with the end-of-answer token if there was one.
        finish_reason: ``stop``, ``length``, ``abort`` or `GIVEN_UP`.
        prompt_tokens: tokens of the prompt.
        cached_prompt_tokens: those of them whose KV was in the prefix cache.
        llm_seconds: its share of the seconds of the engine's steps that it was in; each step is
            shared out evenly among its children.
        logprobs: of each token, the natural logarithm of its probability in the distribution that
            it was drawn from: after temperature, bans and grammar. Empty where nothing learns, and
            where one of them is not finite.
    """

    index: int
    text: str
    token_ids: tuple[int, ...]
    finish_reason: str
    prompt_tokens: int
    cached_prompt_tokens: int
    llm_seconds: float
    logprobs: tuple[float, ...] = ()

    @property
    def generated_tokens(self) -> int:
        """Tokens sampled."""
        return len(self.token_ids)


@dataclass(frozen=True, kw_only=True, slots=True)
class Parsed:
    """What an operator reads of one child in a completion.

    Attributes:
        program: the child's program; None if the completion holds none that is valid Python.
        probability: that the model says the program has; None where it says none.
    """

    program: Program | None
    probability: float | None = None
