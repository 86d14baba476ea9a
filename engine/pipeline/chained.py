"""Requests in which a child is the last of a chain of answers, and not the first answer.

A request's first prompt is decoded for all children at once, as any prompt is. From then on each
child goes on by itself, from one prompt to the next, until its program is there, which is what the
loop gets to see. What was answered on the way is recorded with the child, in one transaction: of a
chain that a kill cut short nothing is recorded, and it begins again, with the same seeds.

Does not cover what is asked, or what follows an answer: ``engine.advisor`` and ``engine.guidance``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from engine.core import Child, Event, Generation, Miss, Program, Prompt, Refusal
from engine.inference import CallMisses, Sampling
from engine.pipeline.request import Request, Response
from engine.pipeline.requests import Requests, never


class Chain(Protocol):
    """What was asked and answered so far for one child.

    Attributes:
        position: its place among the children of its request.
    """

    position: int

    @property
    def prompt(self) -> Prompt:
        """What is to be answered now."""

    @property
    def writes(self) -> bool:
        """Whether the answer to it is the program."""

    def sampled(self) -> Sampling:
        """Return how the answer to the prompt is sampled."""

    def take(self, generation: Generation, *, missed: Mapping[Miss, int]) -> Prompt | None:
        """Take in an answer that is no program; return the next prompt, None where it ends."""

    def events(self) -> Sequence[Event]:
        """Return what records the answers, now that the chain is over."""


@dataclass(kw_only=True)
class ChainedRequest(Request):
    """One call, and the chain of each child that is to be decoded.

    Attributes:
        chains: in the order of `Request.numbers`; none where each child is the first answer.
        is_ending: whether the chains end with the answers that they are at.
        written: why tokens of the last prompt were computed, by child.
    """

    chains: tuple[Chain, ...] = ()
    is_ending: bool = False
    written: dict[int, CallMisses] = field(default_factory=dict)

    def news(self, response: Response) -> Sequence[Event]:
        """Return what was answered before a child."""
        return self.chains[response.generation.index].events() if self.chains else ()

    def child(
        self, response: Response, index: int, *, program: Program | None, refusal: Refusal | None
    ) -> Child:
        """Return the event that records a child; its prompt is the last one of its chain."""
        child = super().child(response, index, program=program, refusal=refusal)
        if not self.chains:
            return child
        misses, counted = self.written.get(index), child.prompt_tokens
        missed = misses.of_child(child.cached_prompt_tokens) if misses and counted else {}
        return replace(child, missed=missed)


@dataclass(kw_only=True)
class Answering:
    """An answer that is under way: at the model, or elsewhere where there are no ``misses``."""

    request: ChainedRequest
    chain: Chain
    misses: CallMisses | None


@dataclass(kw_only=True)
class ChainedRequests(Requests):
    """`Requests` that are all `ChainedRequest`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._answers: dict[int, Answering] = {}  # by ticket

    def abort(self, request: Request) -> None:
        """End a request: its children come back with what they have."""
        assert isinstance(request, ChainedRequest)
        request.is_ending = True
        super().abort(request)
        for ticket, answer in self._answers.items():
            if answer.request is request and answer.misses is not None:
                self.decoder.abort(ticket)

    def _ending(self, request: Request) -> Callable[[str], bool]:
        assert isinstance(request, ChainedRequest)
        asks = any(not chain.writes for chain in request.chains)
        return never if asks else super()._ending(request)

    def _completed(self) -> Iterator[tuple[Request, Generation]]:
        for ticket, generation in self.decoder.completed():
            request, chain, misses = self._whose(ticket, generation)
            done: Generation | None = generation
            if chain is not None and chain.writes:
                request.written[request.numbers[chain.position]] = misses
                done = replace(generation, index=chain.position)
            elif chain is not None:
                done = self._go_on(request, chain, generation, misses)
            if done is not None:
                yield request, done

    def _whose(
        self, ticket: int, generation: Generation
    ) -> tuple[ChainedRequest, Chain | None, CallMisses]:
        """Return whose answer was decoded; the first ones of a request have its ticket."""
        answer = self._answers.pop(ticket, None)
        if answer is not None and answer.misses is not None:
            self._misses.end(answer.misses)
            return answer.request, answer.chain, answer.misses
        request = self._sent[ticket]
        assert isinstance(request, ChainedRequest)
        chain = request.chains[generation.index] if request.chains else None
        return request, chain, request.misses

    def _go_on(
        self, request: ChainedRequest, chain: Chain, generation: Generation, misses: CallMisses
    ) -> Generation | None:
        """Take an answer on the way; return the child's completion if the chain is over."""
        counted, cached = generation.prompt_tokens, generation.cached_prompt_tokens
        prompt = chain.take(generation, missed=misses.of_child(cached) if counted else {})
        if prompt is None:
            return not_decoded(chain, "", finish_reason=generation.finish_reason)
        if request.is_ending:
            return not_decoded(chain, "", finish_reason="abort")
        self._ask(request, chain, prompt)
        return None

    def _ask(self, request: ChainedRequest, chain: Chain, prompt: Prompt) -> None:
        proposal, adapter = request.proposal, self._adapter_of(request, chain)
        ticket, misses = next(self._tickets), self._misses_of(prompt, proposal, adapter=adapter)
        self._answers[ticket] = Answering(request=request, chain=chain, misses=misses)
        self.decoder.submit(
            ticket,
            iteration=proposal.iteration,
            token_ids=prompt.token_ids,
            sampling=[chain.sampled()],
            adapter=adapter,
            is_over=super()._ending(request) if chain.writes else never,
        )

    def _adapter_of(self, request: ChainedRequest, chain: Chain) -> int:
        """Return the version of the adapter that an answer of a chain comes from."""
        return request.adapter


def not_decoded(chain: Chain, text: str, *, finish_reason: str) -> Generation:
    """Return a chain's completion that was not decoded here."""
    return Generation(
        index=chain.position,
        text=text,
        token_ids=(),
        finish_reason=finish_reason,
        prompt_tokens=0,
        cached_prompt_tokens=0,
        llm_seconds=0.0,
    )
