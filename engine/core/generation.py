"""What the model wrote, what it had to compute for it, and what an operator made of it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from engine.core.program import Program


@dataclass(frozen=True, kw_only=True, slots=True)
class Generation:
    """One finished completion, with vLLM's own token counts.

    Attributes:
        index: which of the K children it is.
        text: the completion.
        token_ids: its tokens as sampled, with the end-of-answer token if there was one.
        finish_reason: ``stop``, ``length`` or ``abort``.
        prompt_tokens: tokens of the prompt.
        cached_prompt_tokens: those of them whose KV was in the prefix cache.
        llm_seconds: its share of the seconds of the engine's steps that it was in; each step is
            shared out evenly among its children.
    """

    index: int
    text: str
    token_ids: tuple[int, ...]
    finish_reason: str
    prompt_tokens: int
    cached_prompt_tokens: int
    llm_seconds: float

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


class Miss(enum.StrEnum):
    """Why a prompt token had to be computed; see ``engine.inference.misses``."""

    COLD = "cold"  # no earlier call of this session held the task
    NEW = "new"  # text that no earlier call of this session held
    MOVED = "moved"  # an earlier call held the text, behind another start
    COMPACTION = "compaction"  # the same, because the history was compacted
    EVICTED = "evicted"  # an earlier call held it behind the same start
    CONCURRENT = "concurrent"  # the same, and that call was still under way
    ALIGNMENT = "alignment"  # the end of the prompt, which fills no block of the cache


class Refusal(enum.StrEnum):
    """Why a child is not evaluated."""

    UNPARSED = "unparsed"  # no program could be read from the completion
    ABSENT = "absent"  # the completion held fewer programs than it was asked for
    UNDEFINED = "undefined"  # it would read a name that nothing defines
    UNCHANGED = "unchanged"  # the same program as its parent, by normalised AST
    DUPLICATE = "duplicate"  # the same program as an earlier child, by normalised AST
    SIMILAR = "similar"  # nearly the same as one of its island's programs, by embedding
    LONG = "long"  # too long to be shown to the model as a parent
    BUDGET = "budget"  # the run's budget was reached first
