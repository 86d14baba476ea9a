"""A guess: a request whose call the search has not asked for yet.

Covers: what tells whether it has come true, and the events that record it. Does not cover when a
call is guessed, or given up (``calls.py``).
"""

import dataclasses
from dataclasses import dataclass

from engine.core import Proposal
from engine.pipeline import Request
from engine.store import Call, GivenUp


@dataclass(frozen=True, kw_only=True, slots=True)
class Guess:
    """A call that began on a guess.

    Attributes:
        request: at the model; its responses wait in it.
        ahead: ids of the pending entries that it shows and that were not in the log then.
    """

    request: Request
    ahead: tuple[str, ...]

    @property
    def proposal(self) -> Proposal:
        """What is expected to be asked for."""
        return self.request.proposal

    @property
    def children(self) -> int:
        """Children that are back."""
        return sum(len(response.children) for response in self.request.responses)

    def comes_true(self, proposal: Proposal) -> bool:
        """Whether its prompt will do for ``proposal``: the same change of the same program."""
        return _asked_for(self.proposal) == _asked_for(proposal)

    def call(self) -> Call:
        """Return the event that records the call, once the guess has come true."""
        return dataclasses.replace(self.request.call(), guessed=True, ahead=self.ahead)

    def given_up(self, *, attempt: int) -> GivenUp:
        """Return the event that says what it cost for nothing, once all children are back.

        Args:
            attempt: guesses for its iteration that were given up before.
        """
        wasted = [response.generation for response in self.request.responses]
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
