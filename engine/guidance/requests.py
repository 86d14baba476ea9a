"""Requests with guidance: which one a call begins with, and whether it is rewritten first.

Which one follows from what was recorded before the call, and from the proposal's seed; the call
names it. So a run that goes on finds the same one, whatever was recorded since.
"""

from dataclasses import dataclass, replace

from engine.core import Call, Proposal
from engine.guidance.chain import GuidedChain
from engine.guidance.choice import chosen, rewrites
from engine.guidance.operator import GuidedOperator
from engine.pipeline import Request
from engine.pipeline.chained import ChainedRequest, ChainedRequests


@dataclass(kw_only=True)
class GuidedRequest(ChainedRequest):
    """One call, and the guidance that it begins with.

    Attributes:
        guidance: its id; None for the initial one.
    """

    guidance: str | None = None

    def call(self) -> Call:
        """Return the event that records the call."""
        return replace(super().call(), guidance=self.guidance)


@dataclass(kw_only=True)
class GuidedRequests(ChainedRequests):
    """`ChainedRequests` of which those of a `GuidedOperator` show guidance."""

    def _request(self, proposal: Proposal) -> Request:
        operator = self.operators[proposal.operator]
        if not isinstance(operator, GuidedOperator):
            return self._made(GuidedRequest, proposal, operator.compose(proposal))
        name = self._chosen(proposal)
        text = operator.initial if name is None else self.history.guidance.text_of(name)
        proposal = replace(proposal, guidance=text)
        asks = rewrites(proposal.rule)
        prompt = operator.rewriting(proposal) if asks else operator.compose(proposal)
        request = self._made(GuidedRequest, proposal, prompt)
        request.guidance = name
        request.chains = tuple(
            GuidedChain(
                child=request.child_id(number),
                position=position,
                operator=operator,
                proposal=proposal,
                begun_with=name,
                sampling=request.sampling[number],
                prompt=prompt,
                writes=not asks,
            )
            for position, number in enumerate(request.numbers)
        )
        return request

    def _chosen(self, proposal: Proposal) -> str | None:
        history = self.history
        call = history.calls.get(proposal.iteration)
        if call is not None:
            return call.guidance
        return chosen(
            history.guidance.as_of(history.events, island=proposal.island),
            rule=proposal.rule,
            seed=proposal.seed,
            direction=history.direction,
        )
