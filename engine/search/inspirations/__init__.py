"""The contract of the inspirations: which programs of an island a prompt shows beside the parent.

Without such a policy a prompt shows what the layout has: the island's window, or its best. A policy
chooses anew in each call, so the prefix cache serves a call's K children what it shows, and the
next call nothing of it. A transcript shows its own conversation, whatever the policy.

A choice follows from the candidates and the key alone, so a log that is told again shows the same.

Does not cover any policy, how programs look in a prompt, or the second program of a crossover.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from engine.core import Candidate, Direction
from engine.registry import Policies, Policy
from engine.search.roster import Roster
from engine.section import section

DrawParent = Callable[[Roster, int], Candidate]
"""Draws one of some programs by the rule that drew the call's parent; the number is its key."""


class Inspirations(Protocol):
    """Which programs an island's prompts show; it remembers nothing."""

    def choose(
        self, candidates: Roster, *, but: Sequence[str | None], key: int, draw: DrawParent
    ) -> list[Candidate]:
        """Return the programs to show, the most important first; may be none.

        Args:
            candidates: of the island.
            but: ids of those that the prompt shows anyway.
            key: of all draws, from 0 to 2^64 - 1.
            draw: for a policy that draws as parents are drawn.
        """


@section
class InspirationSettings(Policy):
    """A policy as it is configured, under ``search.inspirations``."""

    def make(self, *, direction: Direction) -> Inspirations:
        """Return the policy.

        Args:
            direction: of the scores.
        """
        raise NotImplementedError


INSPIRATIONS = Policies(InspirationSettings, package=__package__, group="brood.inspirations")
