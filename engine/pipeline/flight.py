"""A call on its way: what was asked, on which knowledge, and which of its children are back.

Covers: one call's record from its prompt to its last child, and how its children are sampled. Does
not cover what is done with it: ``engine.loop``.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.core import Generation, Preference, Prompt, Proposal, Refusal
from engine.inference import CallMisses, Sampling
from engine.prompts import Operator
from engine.settings import SearchSettings
from engine.store import Call, Child, GivenUp


class Standing(enum.Enum):
    """What a flight stands on."""

    ASKED = "asked"  # the search asked for it: it is recorded, and so is each child
    GUESSED = "guessed"  # begun on a guess: its children wait until it is known to be right
    DROPPED = "dropped"  # the guess was wrong: its children are aborted


@dataclass(kw_only=True, slots=True)
class Flight:
    """One call at the model.

    Attributes:
        proposal: what was asked for.
        operator: that composed the prompt and reads the completions.
        prompt: of all its children.
        sampling: of all its children, by index.
        numbers: indices of the children that are decoded: all, or those that a death left out.
        misses: why prompt tokens are computed.
        known: events that stood in the log when the prompt was composed.
        ahead: ids of the pending entries in it that were not in the log then.
        standing: see `Standing`.
        preference: why the parent is not the one that the search drew.
        left: children that are not back.
        held: children that are back, of a guess.
        began: when, in seconds of the monotonic clock.
        ended: when the last child was back.
    """

    proposal: Proposal
    operator: Operator
    prompt: Prompt
    sampling: Sequence[Sampling]
    numbers: Sequence[int]
    misses: CallMisses
    known: int
    ahead: tuple[str, ...]
    standing: Standing
    preference: Preference | None = None
    left: int = 0
    held: list[Generation] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None

    def __post_init__(self) -> None:
        self.left = len(self.numbers)

    @property
    def seconds(self) -> float:
        """For how long it has been decoded, or was."""
        return (time.monotonic() if self.ended is None else self.ended) - self.began

    def is_like(self, proposal: Proposal) -> bool:
        """Whether its prompt does for ``proposal``: it asks for the same change of the same."""
        return _asked_for(self.proposal) == _asked_for(proposal)

    def land(self, generation: Generation) -> None:
        """Take in that a child is back."""
        self.left -= 1
        if not self.left:
            self.ended = time.monotonic()
        if self.standing is not Standing.ASKED:
            self.held.append(generation)

    def is_over(self, text: str) -> bool:
        """Whether an answer that begins with ``text`` has its program, or can't have one."""
        operator, parent, prompt = self.operator, self.proposal.parent, self.prompt
        return operator.is_complete(
            parent=parent, prompt=prompt, text=text
        ) or operator.is_hopeless(parent=parent, prompt=prompt, text=text)

    @property
    def is_wanted(self) -> bool:
        """Whether its children may still become candidates."""
        return self.standing is not Standing.DROPPED

    def child_id(self, generation: Generation) -> str:
        """Return the id of the child that a generation makes."""
        return f"{self.proposal.iteration}.{self.numbers[generation.index]}"

    def child(
        self, generation: Generation, *, program: str | None, refusal: Refusal | None
    ) -> Child:
        """Return the event that records a child."""
        proposal, index = self.proposal, self.numbers[generation.index]
        cached = generation.cached_prompt_tokens
        return Child(
            id=self.child_id(generation),
            iteration=proposal.iteration,
            index=index,
            parent=proposal.parent.id,
            operator=proposal.operator,
            completion=generation.text,
            completion_ids=generation.token_ids,
            finish_reason=generation.finish_reason,
            program=program,
            refusal=refusal,
            prompt_tokens=generation.prompt_tokens,
            cached_prompt_tokens=cached,
            llm_seconds=generation.llm_seconds,
            # An abort before the first token leaves nothing counted.
            missed=self.misses.of_child(cached) if generation.prompt_tokens else {},
        )

    def call(self) -> Call:
        """Return the event that records the call."""
        proposal = self.proposal
        return Call(
            iteration=proposal.iteration,
            island=proposal.island,
            parent=proposal.parent.id,
            operator=proposal.operator,
            k=proposal.k,
            known=self.known,
            ahead=self.ahead,
            guessed=self.standing is Standing.GUESSED,
            prompt=self.prompt.text,
            prompt_tokens=len(self.prompt.token_ids),
            temperatures=tuple(each.temperature for each in self.sampling),
            seeds=tuple(each.seed for each in self.sampling),
            preference=self.preference,
            partner=proposal.partner_id,
            repairs=proposal.repairs_id,
        )

    def given_up(self, *, attempt: int) -> GivenUp:
        """Return the event that says what a guess cost for nothing, once all children are back."""
        return GivenUp(
            iteration=self.proposal.iteration,
            attempt=attempt,
            island=self.proposal.island,
            parent=self.proposal.parent.id,
            generated_tokens=sum(each.generated_tokens for each in self.held),
            prompt_tokens=sum(each.prompt_tokens for each in self.held),
            cached_prompt_tokens=sum(each.cached_prompt_tokens for each in self.held),
            llm_seconds=sum(each.llm_seconds for each in self.held),
        )


def _asked_for(proposal: Proposal) -> tuple[str | None, ...]:
    return proposal.parent.id, proposal.operator, proposal.partner_id, proposal.repairs_id


def spread(settings: SearchSettings, proposal: Proposal, prompt: Prompt) -> list[Sampling]:
    """Spread the temperature evenly over the children; a single child gets the middle."""
    low, high = settings.temperature_min, settings.temperature_max
    k = proposal.k
    temperatures = np.linspace(low, high, k) if k > 1 else [(low + high) / 2]
    seeds = np.random.SeedSequence([proposal.seed, 1]).generate_state(k)
    return [
        Sampling(
            temperature=float(temperature),
            seed=int(seed),
            stop=prompt.stop,
            max_tokens=prompt.max_tokens,
            banned=prompt.banned,
            grammar=prompt.grammar,
        )
        for temperature, seed in zip(temperatures, seeds, strict=True)
    ]
