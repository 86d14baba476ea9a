"""Requests with an advisor: each child's chain of answers stands between a call and the child.

A request's first prompt, which asks for ideas, is decoded for all children at once, as any prompt
is. From then on each child goes on by itself, until its program is there, which is what the loop
gets to see. The ideas and the advice are recorded with the child, in one transaction: of a chain
that a kill cut short nothing is recorded, and it begins again.

The advisor's answers come from the version of the adapter that the call names, the implementer's
from the model itself, or from an endpoint.

Does not cover what is asked (``operator.py``) or what follows an answer (``chain.py``).
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from engine.advisor.chain import Chain
from engine.advisor.endpoint import Endpoint, key_of
from engine.advisor.operator import AdvisedOperator, Situation
from engine.core import Child, Event, Generation, Program, Prompt, Proposal, Refusal
from engine.inference import CallMisses
from engine.pipeline import Request, Requests, Response
from engine.pipeline.requests import never
from engine.settings import AdvisorSettings
from engine.timeline import Activity

_log = logging.getLogger("brood")


@dataclass(kw_only=True)
class AdvisedRequest(Request):
    """One call, and the chain of each child that is to be decoded.

    Attributes:
        chains: in the order of `Request.numbers`.
        is_ending: whether the chains end with the answers that they are at.
        written: why tokens of the implementer's prompt were computed, by child.
    """

    chains: tuple[Chain, ...] = ()
    is_ending: bool = False
    written: dict[int, CallMisses] = field(default_factory=dict)

    def news(self, response: Response) -> Sequence[Event]:
        """Return the ideas and the advice before a child."""
        chain = self.chains[response.generation.index]
        return (*chain.ideas(), chain.advice())

    def child(
        self, response: Response, index: int, *, program: Program | None, refusal: Refusal | None
    ) -> Child:
        """Return the event that records a child; its prompt is the implementer's."""
        child = super().child(response, index, program=program, refusal=refusal)
        misses, counted = self.written.get(index), child.prompt_tokens
        missed = misses.of_child(child.cached_prompt_tokens) if misses and counted else {}
        return replace(child, missed=missed)


@dataclass(kw_only=True)
class _Answer:
    """An answer that is under way: at the model, or without ``misses`` at the endpoint."""

    request: AdvisedRequest
    chain: Chain
    misses: CallMisses | None


@dataclass(kw_only=True)
class AdvisedRequests(Requests):
    """`Requests` whose operators are all `AdvisedOperator`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._answers: dict[int, _Answer] = {}  # by ticket
        self._ended: list[_Answer] = []  # at the endpoint, and nobody waits for them any more
        self._endpoint: Endpoint | None = None
        settings = self.settings.advisor
        if settings.implementer == "endpoint":
            key = key_of(settings)
            self._endpoint = Endpoint(settings.endpoint, key=key, notify=self.notify)
        _log.info("advisor: programs are written by %s", implementer_of(settings))

    @property
    def children(self) -> int:
        """How many are at the model or at the endpoint, or about to be sent there."""
        return super().children + (0 if self._endpoint is None else self._endpoint.in_flight)

    def abort(self, request: Request) -> None:
        """End a request: its children come back with what they have."""
        assert isinstance(request, AdvisedRequest)
        request.is_ending = True
        super().abort(request)
        for ticket, answer in list(self._answers.items()):
            if answer.request is not request:
                continue
            if answer.misses is not None:
                self.decoder.abort(ticket)
            elif self._endpoint is not None:
                self._endpoint.forget(ticket)
                self._ended.append(self._answers.pop(ticket))

    def _request(self, proposal: Proposal) -> Request:
        operator = self.operators[proposal.operator]
        assert isinstance(operator, AdvisedOperator)
        call, history = self.history.calls.get(proposal.iteration), self.history
        known = history.ideas.as_of(history.events if call is None else call.known)
        situation = operator.situation(proposal, ideas=known)
        request = self._made(AdvisedRequest, proposal, operator.ideas(situation))
        request.chains = tuple(
            self._chain(request, operator, situation, position)
            for position in range(len(request.numbers))
        )
        return request

    def _chain(
        self, request: Request, operator: AdvisedOperator, situation: Situation, position: int
    ) -> Chain:
        index = request.numbers[position]
        return Chain(
            child=request.child_id(index),
            position=position,
            operator=operator,
            situation=situation,
            sampling=request.sampling[index],
            prompt=request.prompt,
            learns=request.learns,
            implementer=self.settings.advisor.implementer,
        )

    def _completed(self) -> Iterator[tuple[Request, Generation]]:
        for ticket, generation in self.decoder.completed():
            request, chain, misses = self._whose(ticket, generation)
            done: Generation | None
            if chain.question is None:
                request.written[request.numbers[chain.position]] = misses
                done = replace(generation, index=chain.position)
            else:
                done = self._go_on(request, chain, generation, misses)
            if done is not None:
                yield request, done
        yield from self._replies()

    def _whose(
        self, ticket: int, generation: Generation
    ) -> tuple[AdvisedRequest, Chain, CallMisses]:
        """Return whose answer was decoded; the first ones of a request have its ticket."""
        answer = self._answers.pop(ticket, None)
        if answer is not None and answer.misses is not None:
            self._misses.end(answer.misses)
            return answer.request, answer.chain, answer.misses
        request = self._sent[ticket]
        assert isinstance(request, AdvisedRequest)
        return request, request.chains[generation.index], request.misses

    def _go_on(
        self, request: AdvisedRequest, chain: Chain, generation: Generation, misses: CallMisses
    ) -> Generation | None:
        """Take an answer of the advisor's; return the child's completion if the chain is over."""
        counted, cached = generation.prompt_tokens, generation.cached_prompt_tokens
        prompt = chain.take(generation, missed=misses.of_child(cached) if counted else {})
        if prompt is None:
            return chain.written("", finish_reason=generation.finish_reason)
        if request.is_ending:
            return chain.written("", finish_reason="abort")
        self._ask(request, chain, prompt)
        return None

    def _ask(self, request: AdvisedRequest, chain: Chain, prompt: Prompt) -> None:
        proposal, sampling = request.proposal, chain.sampled()
        ticket, writes = next(self._tickets), chain.question is None
        if writes and self._endpoint is not None:
            self._answers[ticket] = _Answer(request=request, chain=chain, misses=None)
            self._endpoint.submit(
                ticket,
                messages=chain.operator.messages(prompt),
                temperature=sampling.temperature,
                seed=sampling.seed,
                max_tokens=sampling.max_tokens,
            )
            return
        adapter = 0 if writes else request.adapter
        misses = self._misses_of(prompt, proposal, adapter=adapter)
        self._answers[ticket] = _Answer(request=request, chain=chain, misses=misses)
        ends_early = writes and self.settings.pipeline.end_early
        self.decoder.submit(
            ticket,
            iteration=proposal.iteration,
            token_ids=prompt.token_ids,
            sampling=[sampling],
            adapter=adapter,
            is_over=request.is_over if ends_early else never,
        )

    def _replies(self) -> Iterator[tuple[Request, Generation]]:
        """Yield the completions that the endpoint has written, or was not waited for."""
        if self._endpoint is None:
            return
        for answer in self._ended:
            yield answer.request, answer.chain.written("", finish_reason="abort")
        self._ended.clear()
        for ticket, reply in self._endpoint.completed():
            answer = self._answers.pop(ticket)
            if isinstance(reply, str):
                _log.warning(
                    "no program for %s: the endpoint gave none (%s)", answer.chain.child, reply
                )
            yield answer.request, answer.chain.replied(reply)
        if self._endpoint.in_flight and not self.decoder.in_flight:
            self.timeline.model.begin(Activity.AWAIT_IMPLEMENTER)


def implementer_of(settings: AdvisorSettings) -> str:
    """Return in words who writes the programs."""
    if settings.implementer == "model":
        return "the model without its adapter"
    return f"{settings.endpoint.model} at {settings.endpoint.url}"
