"""An answer of the model: the program that it holds, or why that is not evaluated."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.core.events.event import RecordedEvent, Tokens
from engine.core.program import Place, Program


class Miss(enum.StrEnum):
    """Why a prompt token had to be computed; see ``engine.inference.misses``."""

    COLD = "cold"  # no earlier call of this session held the task
    NEW = "new"  # text that no earlier call of this session held
    MOVED = "moved"  # an earlier call held the text, behind another start
    COMPACTION = "compaction"  # the same, because the history was compacted
    EVICTED = "evicted"  # an earlier call held it behind the same start
    CONCURRENT = "concurrent"  # the same, and that call was still under way
    ADAPTER = "adapter"  # an earlier call held it there, under another version of the adapter
    ALIGNMENT = "alignment"  # the end of the prompt, which fills no block of the cache


class Refusal(enum.StrEnum):
    """Why a child is not evaluated."""

    UNPARSED = "unparsed"  # no program could be read from the completion
    ABSENT = "absent"  # the completion held fewer programs than it was asked for
    OUTSIDE = "outside"  # it changes what lies outside the evolve blocks
    UNDEFINED = "undefined"  # it would read a name that nothing defines
    UNCHANGED = "unchanged"  # the same program as its parent, by normalised AST
    DUPLICATE = "duplicate"  # the same program as an earlier child, by normalised AST
    SIMILAR = "similar"  # nearly the same as one of its island's programs, by embedding
    LONG = "long"  # too long to be shown to the model as a parent
    BUDGET = "budget"  # the run's budget was reached first
    FAILED = "failed"  # the engine failed on its call again and again, or refused it


@dataclass(frozen=True, kw_only=True, slots=True)
class Child(RecordedEvent):
    """A child was generated. Subject: its id, ``iteration.index``.

    Attributes:
        completion: the model's answer. One that lists several programs is recorded, with its tokens
            and seconds, with the first child that it makes; it is empty for the others.
        completion_ids: the answer's tokens, as they were sampled.
        program: the program that the completion holds; None if it holds none.
        refusal: why it is not evaluated; None for a candidate, whose verdict follows.
        missed: how many tokens of its prompt were computed, by reason.
        rank: its place in an answer that lists several programs, from 0; None for a child with an
            answer of its own, and for an absent one.
        probability: that the model gave for it; None if it gave none.
        logprobs: of each token of the answer; see `Generation`.
    """

    KIND = "child"
    NAMED_BY = ("id",)
    id: str
    iteration: int
    index: int
    parent: str
    operator: str
    completion: str
    completion_ids: tuple[int, ...]
    finish_reason: str
    program: Program | None
    refusal: Refusal | None
    prompt_tokens: Tokens
    cached_prompt_tokens: Tokens
    llm_seconds: float
    missed: Mapping[Miss, Tokens] = field(default_factory=dict)
    rank: int | None = None
    probability: float | None = None
    logprobs: tuple[float, ...] = ()

    @property
    def place(self) -> Place:
        """Where it stands among the others."""
        return self.iteration, self.index, self.id

    @property
    def generated_tokens(self) -> int:
        """Tokens sampled."""
        return len(self.completion_ids)
