"""The contract of the parent policies: whom to change next, learnt from what became of others.

A policy belongs to one island. Its state is a fold over what it was told, in the order of the log:
no clock, no generator that is carried on. All chance comes from the two numbers of a choice, so
a policy that is told a log again chooses as the one that wrote it.

Covers: the interface, and what an iteration says of its parent. Does not cover any policy, or who
counts as a candidate.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.core import Candidate, Direction
from engine.registry import Policies, Policy
from engine.section import section

EXPLORE, FIRST = "explore", "first"
"""Rules by which a parent is changed without a look at others: to explore, and to begin with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Offspring:
    """A child as its verdict left it.

    Attributes:
        id: the candidate's.
        score: None if it got none.
    """

    id: str
    score: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ParentOutcome:
    """What became of a parent in one iteration; its verdicts are all in.

    Attributes:
        iteration: its number, from 0; an island's own have gaps where others' are.
        parent: id of the candidate that was changed.
        children: in the order of their places; may be none.
    """

    iteration: int
    parent: str
    children: tuple[Offspring, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Draw:
    """Whom a policy has chosen.

    Attributes:
        candidate: the parent.
        rule: which of the policy's ways led to it; the policy's name where there is one way.
    """

    candidate: Candidate
    rule: str


class ParentPolicy:
    """Whom each iteration of one island changes."""

    def choose(self, candidates: Sequence[Candidate], *, u: float, key: int) -> Draw:
        """Choose one of ``candidates``, given what was told; asking again changes nothing.

        With the same ``u`` and ``key`` the choice depends on the candidates as little as the
        policy allows (``engine.search.race``).

        Args:
            candidates: whom to choose among, at least one; their order matters only between those
                that are equal in score and length.
            u: uniform on [0, 1); says which way is taken where a policy has several.
            key: of all other draws, from 0 to 2^64 - 1.
        """
        raise NotImplementedError

    def takes_any(self, *, u: float) -> bool:
        """Return whether the choice with this ``u`` is among all programs with a score.

        It is among the elites otherwise, where the island has an archive.
        """
        return False

    def begin_with(self, candidate: Candidate) -> None:
        """Take in a program that the island begins with.

        To a policy that has no method of its own it is what any program is that no call made.
        """
        self.receive(candidate)

    def receive(self, candidate: Candidate) -> None:
        """Take in a program that no call of the island made: another one sent it, or it is a fill.

        A policy that has no method of its own learns nothing from it.
        """

    def tell(self, outcome: ParentOutcome) -> None:
        """Take in what became of a parent, once, in the order of the island's iterations.

        A policy that has no method of its own learns nothing from it.
        """


@section
class ParentSettings(Policy):
    """A policy for parents as it is configured, under ``search.parent``."""

    def make(self, *, direction: Direction) -> ParentPolicy:
        """Return the policy of an island that was told nothing.

        Args:
            direction: of the scores.
        """
        raise NotImplementedError


PARENTS = Policies(ParentSettings, package=__package__, group="brood.parents")
