"""A request to the model: the K children of one call, how they are sampled, and which are back.

Mostly a completion makes one child. An answer that lists several programs (`Prompt.at_once`) makes
a child of each. The last answer makes all children that are left; a child for which it has no
program is absent. Where an answer has fewer than `FEWEST` programs, and children are left, the
model is asked once more, with the call's next seed.

Covers: one call from its prompt to its last child. Does not cover how requests are composed and
sent (``requests.py``), or whether a program is worth an evaluation (``reader.py``).
"""

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.core import (
    GIVEN_UP,
    Generation,
    Parsed,
    Program,
    Prompt,
    Proposal,
    Refusal,
    SampledFrom,
)
from engine.inference import CallMisses, Sampling
from engine.prompts import Operator, Parsing
from engine.settings import SearchSettings
from engine.store import Call, Child, Event

FEWEST = 2
"""Programs below which an answer that was to list several is asked for again. TurboEvolve (section
3.1, footnote 2) accepts fewer than K and asks again below "a small minimum", which it does not
give; a single program is what a call of one child brings, and no set to choose from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """A completion that is back.

    Attributes:
        generation: as the model gave it.
        parsed: what the operator read in it.
        first: index of the child that the first program in `parsed` becomes.
        children: indices of the children that it makes, at least one. A child for which `parsed`
            has no program is absent. A program whose child is not among these is ignored, because
            that child was recorded before.
    """

    generation: Generation
    parsed: Sequence[Parsed]
    first: int
    children: tuple[int, ...]

    def child(self, index: int) -> Parsed | None:
        """Return what was read of a child; None if it is absent."""
        rank = index - self.first
        return self.parsed[rank] if rank < len(self.parsed) else None


@dataclass(kw_only=True, slots=True)
class Request:
    """One call at the model.

    Attributes:
        ticket: its number among the requests of this session.
        proposal: what was asked for.
        operator: that composed the prompt and reads the completions.
        prompt: of all its children.
        sampling: of all its children, by index; where one completion lists several programs, of
            the first completion and of the second one.
        numbers: indices of the children to decode: all of them, or in a run that goes on those
            that are not recorded.
        misses: why prompt tokens are computed.
        known: how many events the log held when the prompt was composed.
        adapter: version of the adapter that its children are sampled from; 0 for the model itself.
        learns: whether what they are sampled from is recorded, for a trainer.
        is_dropped: whether nobody waits for its children: its responses are not read.
        left: how many completions are not back.
        responses: the completions that are back, in the order in which they came.
        free: indices of the children that no completion has made yet; used where one completion
            lists several programs.
        first: index of the child that the next completion's first program becomes.
        began: when, in seconds of the monotonic clock.
        ended: when the last completion was back.
    """

    ticket: int
    proposal: Proposal
    operator: Operator
    prompt: Prompt
    sampling: Sequence[Sampling]
    numbers: Sequence[int]
    misses: CallMisses
    known: int
    adapter: int = 0
    learns: bool = False
    is_dropped: bool = False
    left: int = 0
    responses: list[Response] = field(default_factory=list)
    free: tuple[int, ...] = ()
    first: int = 0
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None

    def __post_init__(self) -> None:
        self.free = tuple(self.numbers)
        self.left = len(self.unsent)

    @property
    def seconds(self) -> float:
        """How long it has been decoded so far; once it has ended, how long that took."""
        return (time.monotonic() if self.ended is None else self.ended) - self.began

    @property
    def lists(self) -> bool:
        """Whether a completion lists several programs."""
        return self.prompt.at_once > 1

    @property
    def unsent(self) -> Sequence[Sampling]:
        """How the completions to send now are sampled.

        That is one completion for each child; where one lists several programs, it is a single one.
        """
        if self.lists:
            return [self.sampling[len(self.responses)]]
        return [self.sampling[number] for number in self.numbers]

    @property
    def asks_again(self) -> bool:
        """Whether its answer held too few programs, and another one is to be sent."""
        return self.lists and bool(self.responses) and self.left > 0

    def parsing(self, generation: Generation) -> Parsing:
        """Return what parses a completion; see `Operator.parsing`."""
        parent, prompt = self.proposal.parent, self.prompt
        return self.operator.parsing(parent=parent, prompt=prompt, generation=generation)

    def receive(self, generation: Generation, parsed: Sequence[Parsed]) -> Response:
        """Take in that a completion is back; return the children that it makes.

        Args:
            generation: the completion.
            parsed: what was parsed of it.
        """
        self.left -= 1
        response = self._response(generation, parsed)
        if not self.left:
            self.ended = time.monotonic()
        self.responses.append(response)
        return response

    def _response(self, generation: Generation, parsed: Sequence[Parsed]) -> Response:
        if not self.lists:
            index = self.numbers[generation.index]
            return Response(generation=generation, parsed=parsed, first=index, children=(index,))
        first, is_ended = self.first, generation.finish_reason in ("abort", GIVEN_UP)
        children, self.free = allot(
            self.free,
            first=first,
            programs=len(parsed),
            may_ask_again=not self.is_dropped and not is_ended and not self.responses,
        )
        self.first, self.left = children[-1] + 1, 1 if self.free else 0
        return Response(generation=generation, parsed=parsed, first=first, children=children)

    def is_over(self, text: str) -> bool:
        """Whether nothing that follows ``text`` in an answer changes its program."""
        parent, prompt = self.proposal.parent, self.prompt
        return self.operator.is_complete(parent=parent, prompt=prompt, text=text)

    def is_cut_off(self, response: Response) -> bool:
        """Whether a completion was ended before its program was complete.

        A list that was cut off has complete programs, and none for the children that are absent.
        """
        generation = response.generation
        is_aborted = generation.finish_reason == "abort" and not self.lists
        return is_aborted and not self.is_over(generation.text)

    def child_id(self, index: int) -> str:
        """Return the id of a child."""
        return f"{self.proposal.iteration}.{index}"

    def child(
        self, response: Response, index: int, *, program: Program | None, refusal: Refusal | None
    ) -> Child:
        """Return the event that records a child.

        The first of the children that a completion makes has its text and its cost; the others
        have neither.
        """
        proposal, generation = self.proposal, response.generation
        if index != response.children[0]:
            generation = _nothing(generation)
        parsed, cached = response.child(index), generation.cached_prompt_tokens
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
            rank=index - response.first if self.lists and parsed is not None else None,
            probability=None if parsed is None else parsed.probability,
            logprobs=generation.logprobs,
        )

    def news(self, response: Response) -> Sequence[Event]:
        """Return the events to be recorded before the children that a completion makes."""
        return ()

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
            prompt=self.prompt.text,
            prompt_tokens=len(self.prompt.token_ids),
            temperatures=tuple(each.temperature for each in self.sampling),
            seeds=tuple(each.seed for each in self.sampling),
            partner=proposal.partner_id,
            repairs=proposal.repairs_id,
            adapter=self.adapter,
            sampled_from=_sampled_from(self.prompt) if self.learns else None,
        )


def _sampled_from(prompt: Prompt) -> SampledFrom:
    return SampledFrom(
        prompt_ids=prompt.token_ids,
        banned=prompt.banned,
        grammar=prompt.grammar,
        schema=prompt.schema,
    )


def _nothing(generation: Generation) -> Generation:
    """Return what a child has of a completion that is recorded with another one."""
    return dataclasses.replace(
        generation,
        text="",
        token_ids=(),
        prompt_tokens=0,
        cached_prompt_tokens=0,
        llm_seconds=0.0,
        logprobs=(),
    )


def spread(settings: SearchSettings, proposal: Proposal, prompt: Prompt) -> list[Sampling]:
    """Spread the temperature evenly over the children; a single child gets the middle.

    A completion that lists several programs gets the middle too. It has two entries: the second
    one is for asking again if the first completion holds too few programs.
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


def allot(
    free: Sequence[int], *, first: int, programs: int, may_ask_again: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the children that an answer makes, and those that another answer is to make.

    An answer makes at least one child, with which its cost is recorded.

    Args:
        free: indices of the children that no answer made, in their order.
        first: index of the child that the answer's first program is.
        programs: that the answer holds.
        may_ask_again: whether there may be another answer.
    """
    own = [index for index in free if first <= index < first + programs] or free[:1]
    if programs < FEWEST and len(own) < len(free) and may_ask_again:
        return tuple(own), tuple(index for index in free if index not in own)
    return tuple(free), ()
