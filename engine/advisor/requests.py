"""Requests with an advisor: each child's chain of answers stands between a call and the child.

The advisor's answers come from the version of the adapter that the call names, the implementer's
from the model itself, or from an endpoint.

Does not cover how chains go on (``engine.pipeline.chained``), what is asked (``operator.py``) or
what follows an answer (``chain.py``).
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from engine.advisor.chain import Chain
from engine.advisor.endpoint import Endpoint, key_of
from engine.advisor.operator import AdvisedOperator, Situation
from engine.core import Generation, Prompt, Proposal
from engine.pipeline import Request
from engine.pipeline.chained import Answering, ChainedRequest, ChainedRequests, not_decoded
from engine.pipeline.chained import Chain as AnyChain
from engine.settings import AdvisorSettings
from engine.timeline import Activity

_log = logging.getLogger("brood")


@dataclass(kw_only=True)
class AdvisedRequests(ChainedRequests):
    """`ChainedRequests` whose operators are all `AdvisedOperator`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._ended: list[Answering] = []  # at the endpoint, and nobody waits for them any more
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
        super().abort(request)
        for ticket, answer in list(self._answers.items()):
            if answer.request is request and answer.misses is None and self._endpoint is not None:
                self._endpoint.forget(ticket)
                self._ended.append(self._answers.pop(ticket))

    def _request(self, proposal: Proposal) -> Request:
        operator = self.operators[proposal.operator]
        assert isinstance(operator, AdvisedOperator)
        call, history = self.history.calls.get(proposal.iteration), self.history
        known = history.ideas.as_of(history.events if call is None else call.known)
        situation = operator.situation(proposal, ideas=known)
        request = self._made(ChainedRequest, proposal, operator.ideas(situation))
        request.chains = tuple(
            self._chain(request, operator, situation, position)
            for position in range(len(request.numbers))
        )
        return request

    def _chain(
        self,
        request: ChainedRequest,
        operator: AdvisedOperator,
        situation: Situation,
        position: int,
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
        yield from super()._completed()
        yield from self._replies()

    def _ask(self, request: ChainedRequest, chain: AnyChain, prompt: Prompt) -> None:
        if not chain.writes or self._endpoint is None:
            super()._ask(request, chain, prompt)
            return
        assert isinstance(chain, Chain)
        ticket, sampling = next(self._tickets), chain.sampled()
        self._answers[ticket] = Answering(request=request, chain=chain, misses=None)
        self._endpoint.submit(
            ticket,
            messages=chain.operator.messages(prompt),
            temperature=sampling.temperature,
            seed=sampling.seed,
            max_tokens=sampling.max_tokens,
        )

    def _adapter_of(self, request: ChainedRequest, chain: AnyChain) -> int:
        return 0 if chain.writes else request.adapter

    def _replies(self) -> Iterator[tuple[Request, Generation]]:
        """Yield the completions that the endpoint has written, or was not waited for."""
        if self._endpoint is None:
            return
        for answer in self._ended:
            yield answer.request, not_decoded(answer.chain, "", finish_reason="abort")
        self._ended.clear()
        for ticket, reply in self._endpoint.completed():
            answer = self._answers.pop(ticket)
            chain = answer.chain
            assert isinstance(chain, Chain)
            if isinstance(reply, str):
                _log.warning("no program for %s: the endpoint gave none (%s)", chain.child, reply)
            yield answer.request, chain.replied(reply)
        if self._endpoint.in_flight and not self.decoder.in_flight:
            self.timeline.model.begin(Activity.AWAIT_IMPLEMENTER)


def implementer_of(settings: AdvisorSettings) -> str:
    """Return in words who writes the programs."""
    if settings.implementer == "model":
        return "the model without its adapter"
    return f"{settings.endpoint.model} at {settings.endpoint.url}"
