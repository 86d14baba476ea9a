"""The contract of the rules of novelty: whether a program is a near-copy of one on its island.

Does not cover any rule, how often a parent is tried again, or programs that are the same but for
layout: ``engine.search.population``.
"""

from collections.abc import Sequence
from typing import Protocol

from engine.core import Candidate, Pending
from engine.registry import Policies, Policy
from engine.section import section


class Novelty(Protocol):
    """Which new programs are rejected, on any island."""

    def near_copy(
        self, program: str, island: Sequence[Candidate | Pending]
    ) -> Candidate | Pending | None:
        """Return what a new program is to be rejected for; None if it is new enough.

        A verdict may change with what else was compared, so a run that goes on records what was
        rejected, and does not decide it again.

        Args:
            program: the new one's text.
            island: what it is compared with.
        """


@section
class NoveltySettings(Policy):
    """A rule of novelty as it is configured, under ``search.novelty``."""

    def make(self) -> Novelty:
        """Return the rule."""
        raise NotImplementedError


NOVELTY = Policies(NoveltySettings, package=__package__, group="brood.novelty")
