"""A call on its way: what was asked, on which knowledge, and which of its children are back.

Covers: one call's record from its prompt to its last child, and how its children are sampled. Does
not cover which children a completion makes (``landing.py``), or what is done with the call:
``engine.loop``.
"""

from __future__ import annotations

import dataclasses
import enum
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.core import Generation, Parsed, Preference, Prompt, Proposal, Refusal
from engine.inference import CallMisses, Sampling
from engine.pipeline.landing import Landing, allot
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
        sampling: of all its children, by index; or of its answers, if each lists several programs.
        numbers: indices of the children that are decoded: all, or those that a death left out.
        misses: why prompt tokens are computed.
        known: events that stood in the log when the prompt was composed.
        ahead: ids of the pending entries in it that were not in the log then.
        standing: see `Standing`.
        preference: why the parent is not the one that the search drew.
        left: completions that are not back.
        answers: those that are.
        free: children that no answer made yet, where each lists several programs.
        first: the child that the first program of the next answer is.
        held: completions that are back, of a guess.
        began: when, in seconds of the monotonic clock.
        ended: when the last completion was back.
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
    answers: int = 0
    free: tuple[int, ...] = ()
    first: int = 0
    held: list[Landing] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None

    def __post_init__(self) -> None:
        self.free = tuple(self.numbers)
        self.left = len(self.unsent)

    @property
    def seconds(self) -> float:
        """For how long it has been decoded, or was."""
        return (time.monotonic() if self.ended is None else self.ended) - self.began

    def is_like(self, proposal: Proposal) -> bool:
        """Whether its prompt does for ``proposal``: it asks for the same change of the same."""
        return _asked_for(self.proposal) == _asked_for(proposal)

    @property
    def lists(self) -> bool:
        """Whether a completion lists several programs."""
        return self.prompt.at_once > 1

    @property
    def unsent(self) -> Sequence[Sampling]:
        """The completions to be sent: those of all children, or the first or second answer's."""
        if self.lists:
            return [self.sampling[self.answers]]
        return [self.sampling[number] for number in self.numbers]

    @property
    def asks_again(self) -> bool:
        """Whether its answer held too few programs, and another one is to be sent."""
        return self.lists and self.answers > 0 and self.left > 0

    @property
    def children_held(self) -> int:
        """Children that are back, of a guess."""
        return sum(len(landing.children) for landing in self.held)

    def land(self, generation: Generation) -> Landing:
        """Take in that a completion is back; return the children that it makes."""
        self.left -= 1
        landing = self._landing(generation)
        self.answers += 1
        if not self.left:
            self.ended = time.monotonic()
        if self.standing is not Standing.ASKED:
            self.held.append(landing)
        return landing

    def _landing(self, generation: Generation) -> Landing:
        parsed: Sequence[Parsed] = ()
        if self.is_wanted:
            parent, prompt = self.proposal.parent, self.prompt
            parsed = self.operator.parse(parent=parent, prompt=prompt, generation=generation)
        if not self.lists:
            index = self.numbers[generation.index]
            return Landing(generation=generation, parsed=parsed, first=index, children=(index,))
        first, is_ended = self.first, generation.finish_reason == "abort"
        children, self.free = allot(
            self.free,
            first=first,
            programs=len(parsed),
            may_ask_again=self.is_wanted and not is_ended and not self.answers,
        )
        self.first, self.left = children[-1] + 1, 1 if self.free else 0
        return Landing(generation=generation, parsed=parsed, first=first, children=children)

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

    def child_id(self, index: int) -> str:
        """Return the id of a child."""
        return f"{self.proposal.iteration}.{index}"

    def child(
        self, landing: Landing, index: int, *, program: str | None, refusal: Refusal | None
    ) -> Child:
        """Return the event that records a child.

        The completion and what it cost are recorded with the first of the children that it makes.
        """
        proposal, generation = self.proposal, landing.generation
        if index != landing.children[0]:
            generation = _nothing(generation)
        parsed, cached = landing.child(index), generation.cached_prompt_tokens
        return Child(
            id=self.child_id(index),
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
            rank=index - landing.first if self.lists and parsed is not None else None,
            probability=None if parsed is None else parsed.probability,
        )

    def call(self) -> Call:
        """Return the event that records the call."""
        proposal = self.proposal
        return Call(
            iteration=proposal.iteration,
            island=proposal.island,
            parent=proposal.parent.id,
            rule=proposal.rule,
            shown=tuple(each for each in self.prompt.shows if each != proposal.parent.id),
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
        wasted = [landing.generation for landing in self.held]
        return GivenUp(
            iteration=self.proposal.iteration,
            attempt=attempt,
            island=self.proposal.island,
            parent=self.proposal.parent.id,
            generated_tokens=sum(each.generated_tokens for each in wasted),
            prompt_tokens=sum(each.prompt_tokens for each in wasted),
            cached_prompt_tokens=sum(each.cached_prompt_tokens for each in wasted),
            llm_seconds=sum(each.llm_seconds for each in wasted),
        )


def _asked_for(proposal: Proposal) -> tuple[str | None, ...]:
    return proposal.parent.id, proposal.operator, proposal.partner_id, proposal.repairs_id


def _nothing(generation: Generation) -> Generation:
    """Return what a child has of a completion that is recorded with another one."""
    return dataclasses.replace(
        generation,
        text="",
        token_ids=(),
        prompt_tokens=0,
        cached_prompt_tokens=0,
        llm_seconds=0.0,
    )


def spread(settings: SearchSettings, proposal: Proposal, prompt: Prompt) -> list[Sampling]:
    """Spread the temperature evenly over the children; a single child gets the middle.

    So do answers that list several programs: there are two, the second for a first that falls
    short.
    """
    low, high = settings.temperature_min, settings.temperature_max
    alone = proposal.k == 1 or prompt.at_once > 1
    count = 2 if prompt.at_once > 1 else proposal.k
    temperatures = [(low + high) / 2] * count if alone else np.linspace(low, high, count)
    seeds = np.random.SeedSequence([proposal.seed, 1]).generate_state(count)
    return [
        Sampling(
            temperature=float(temperature),
            seed=int(seed),
            stop=prompt.stop,
            max_tokens=prompt.max_tokens,
            banned=prompt.banned,
            grammar=prompt.grammar,
            schema=prompt.schema,
        )
        for temperature, seed in zip(temperatures, seeds, strict=True)
    ]
