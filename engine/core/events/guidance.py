"""What the model wrote of how to go about a problem."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.core.events.child import Miss
from engine.core.events.event import RecordedEvent, Tokens


@dataclass(frozen=True, kw_only=True, slots=True)
class Guidance(RecordedEvent):
    """The model was asked to rewrite the guidance before a child; the child follows.

    Subject: the child.

    Attributes:
        child: its id, and that of the new guidance.
        of: id of the guidance that was to be rewritten; None for the initial one.
        text: the new guidance, with which the child was written; None where the answer was of no
            use, so that the child was written with the old one.
        answer: the model's.
        answer_ids: its tokens, as they were sampled.
        finish_reason: see `engine.core.Generation`, as for the next three.
        prompt_tokens: of its prompt.
        cached_prompt_tokens: those of them whose KV was in the prefix cache.
        llm_seconds: of the engine.
        missed: how many tokens of its prompt were computed, by reason.
        temperature: that it was sampled at.
    """

    KIND = "guidance"
    NAMED_BY = ("child",)
    child: str
    of: str | None
    text: str | None
    answer: str
    answer_ids: tuple[int, ...]
    finish_reason: str
    prompt_tokens: Tokens
    cached_prompt_tokens: Tokens
    llm_seconds: float
    missed: Mapping[Miss, Tokens] = field(default_factory=dict)
    temperature: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Tactics(RecordedEvent):
    """The model said what to try; calls that are composed later show it, an idea each.

    Subject: its number.

    Attributes:
        number: those before this one.
        ideas: that its answer holds; may be none.
        answer: as the model gave it.
        prompt_tokens: of the question.
        cached_prompt_tokens: those of them that the prefix cache served.
        generated_tokens: of the answer.
        llm_seconds: of the engine.
    """

    KIND = "tactics"
    NAMED_BY = ("number",)
    number: int
    ideas: tuple[str, ...]
    answer: str
    prompt_tokens: Tokens
    cached_prompt_tokens: Tokens
    generated_tokens: Tokens
    llm_seconds: float
