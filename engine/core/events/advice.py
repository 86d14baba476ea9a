"""What an advisor was asked and answered before a child."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.core.events.child import Miss
from engine.core.events.event import RecordedEvent, Tokens


class Novelty(enum.StrEnum):
    """What the advisor finds of an idea, beside those of the repository."""

    NEW = "new"
    REFINES = "refines"  # it takes an idea further, or corrects it
    REPEATS = "repeats"  # the repository has it already, which it is not added to again


@dataclass(frozen=True, kw_only=True, slots=True)
class Idea(RecordedEvent):
    """The advisor had an idea. Subject: its id, the child's with the idea's number behind it.

    Attributes:
        child: id of the child before which it was had.
        number: its place among the ideas of that child, from 1.
        hypothesis: what would make programs better.
        reasoning: why.
        novelty: by the advisor's own judgement.
        of: id of the idea that it refines or repeats; None for a new one.
    """

    KIND = "idea"
    NAMED_BY = ("child", "number")
    child: str
    number: int
    hypothesis: str
    reasoning: str
    novelty: Novelty
    of: str | None = None

    @property
    def id(self) -> str:
        """Its id."""
        return self.subject


class Question(enum.StrEnum):
    """What the advisor is asked for before a program is written, in this order."""

    IDEAS = "ideas"
    NOVELTY = "novelty"  # left out as long as the repository is empty
    SELECTION = "selection"


@dataclass(frozen=True, kw_only=True, slots=True)
class Consultation:
    """One answer of the advisor, and what it was sampled from.

    Attributes:
        question: what it was asked.
        answer: its text.
        answer_ids: its tokens, as they were sampled.
        finish_reason: see `engine.core.Generation`, as for the next four.
        logprobs: of each token of the answer.
        prompt_tokens: of its prompt.
        cached_prompt_tokens: those of them whose KV was in the prefix cache.
        llm_seconds: of the engine.
        missed: how many tokens of its prompt were computed, by reason.
        temperature: that it was sampled at.
        shared: how many tokens its prompt has in common with the call's, from the start.
        own_ids: the tokens behind those; empty where nothing learns.
        grammar: EBNF that it follows; None where nothing learns.
    """

    question: Question
    answer: str
    answer_ids: tuple[int, ...]
    finish_reason: str
    logprobs: tuple[float, ...] = ()
    prompt_tokens: Tokens
    cached_prompt_tokens: Tokens
    llm_seconds: float
    missed: Mapping[Miss, Tokens] = field(default_factory=dict)
    temperature: float
    shared: int
    own_ids: tuple[int, ...] = ()
    grammar: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Advice(RecordedEvent):
    """The advisor was asked before a child was written; the child follows. Subject: the child.

    Attributes:
        child: its id.
        idea: id of the idea that the child tests; None where the advisor came to none.
        experiment: what was to be tried.
        consultations: the advisor's answers, in their order.
        unread: the question whose answer was of no use, so that nothing was written; None also
            where the chain was ended because the budget was spent.
        implementer: ``model`` or ``endpoint``.
        outage: why the endpoint gave no answer; None if it did, or was not asked.
        endpoint_prompt_tokens: as the endpoint counted them; 0 if it did not say.
        endpoint_tokens: that it generated, likewise.
        endpoint_seconds: until its answer was there.
    """

    KIND = "advice"
    NAMED_BY = ("child",)
    child: str
    idea: str | None
    experiment: str
    consultations: tuple[Consultation, ...]
    unread: Question | None = None
    implementer: str = "model"
    outage: str | None = None
    endpoint_prompt_tokens: Tokens = 0
    endpoint_tokens: Tokens = 0
    endpoint_seconds: float = 0.0
