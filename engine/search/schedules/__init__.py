"""The contract of the schedules: which islands may call, and when a further one is opened.

Without a schedule all islands call as soon as they can, the one first whose last call is longest
ago. A schedule is a fold over what it was told, in the order of the log, without chance, so one
that is told a log again decides as the one that wrote it.

Does not cover any schedule, or what an island consists of: ``engine.search.archipelago``.
"""

from collections.abc import Sequence
from typing import Protocol

from engine.core import Candidate, Direction
from engine.registry import Policies, Policy
from engine.search.parents import ParentOutcome
from engine.section import section


class Schedule(Protocol):
    """Which islands get the next calls."""

    def allowed(self, free: Sequence[int], *, islands: int) -> Sequence[int]:
        """Return the islands that may call now, which may be none; asking changes nothing.

        Args:
            free: the islands that have no call under way.
            islands: how many there are.
        """

    def is_due(self, *, islands: int) -> bool:
        """Return whether to open an island now, where there are so many."""

    def opened(self) -> None:
        """Take in that an island was opened, with the next number."""

    def receive(self, island: int, candidate: Candidate) -> None:
        """Take in a program that no call of an island made: its first ones, migrants, fills."""

    def tell(self, island: int, outcome: ParentOutcome) -> None:
        """Take in what became of an iteration."""


@section
class ScheduleSettings(Policy):
    """A schedule as it is configured, under ``islands.schedule``."""

    def make(self, *, direction: Direction) -> Schedule:
        """Return the schedule of a run that was told nothing.

        Args:
            direction: of the scores.
        """
        raise NotImplementedError


SCHEDULES = Policies(ScheduleSettings, package=__package__, group="brood.schedules")
