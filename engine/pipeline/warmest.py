"""Choosing the warmest of near-equal parents: the one whose prompt costs least to compute.

The search draws a parent; others may be as good within a tolerance, and of some of them most of the
prompt is in the prefix cache. `WarmestParent` takes the cheapest, and says what that gave up and
what it saved, so that a run's report can weigh the one against the other.

A choice depends on the cache and so on the past of the process: it is written down with the call,
and a run that goes on takes what is written.

Does not cover who is near-equal: ``Search.near``.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.core import Preference, Proposal
from engine.inference import Model
from engine.prompts import Operator
from engine.search import Search

RIVALS = 8
"""The most parents that are compared: composing a prompt costs milliseconds."""


class WarmestParent:
    """Replaces a drawn parent by a near-equal one whose prompt is cached further."""

    def __init__(
        self,
        *,
        search: Search,
        operators: Mapping[str, Operator],
        model: Model,
        tolerance: float,
    ) -> None:
        """``tolerance``: how much of the span of the scores a parent may lie below the drawn."""
        self._search = search
        self._operators = operators
        self._model = model
        self._tolerance = tolerance

    def choose(self, proposal: Proposal) -> tuple[Proposal, Preference | None]:
        """Return the cheapest proposal, and what that cost and saved; None for the drawn one."""
        if not self._tolerance or proposal.repairs is not None:  # a repair's parent is no draw
            return proposal, None
        rivals = self._search.near(proposal, tolerance=self._tolerance, most=RIVALS)
        computed = self._computed(proposal)
        best, cheapest = proposal, computed
        for rival in rivals:
            other = self._search.ask(
                proposal.iteration, island=proposal.island, parent_id=rival.id, rule="cached"
            )
            tokens = self._computed(other)
            if tokens < cheapest:
                best, cheapest = other, tokens
        if best is proposal:
            return proposal, None
        drawn, taken = proposal.parent, best.parent
        difference = abs(drawn.score - taken.score)
        gives_up = self._search.direction.better(drawn.score, than=taken.score)
        return best, Preference(
            drawn=drawn.id,
            score_given_up=difference if gives_up else -difference,
            tokens_saved=computed - cheapest,
        )

    def _computed(self, proposal: Proposal) -> int:
        """Return how many prompt tokens a proposal's first child would have computed now."""
        token_ids = self._operators[proposal.operator].compose(proposal).token_ids
        return len(token_ids) - self._model.cached_tokens(token_ids)
