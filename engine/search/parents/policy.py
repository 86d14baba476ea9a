"""The contract of the parent policies: whom to change next, learnt from what became of others.

A policy belongs to one island. Its state is a fold over what it was told, in the order of the log:
no clock, no generator that is carried on. All chance comes from the two numbers of a choice, so
a policy that is told a log again chooses as the one that wrote it.

Covers: the interface, and what an iteration says of its parent. Does not cover any policy, or who
counts as a candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.core import Candidate


@dataclass(frozen=True, kw_only=True, slots=True)
class Child:
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
    children: tuple[Child, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Draw:
    """Whom a policy has chosen.

    Attributes:
        candidate: the parent.
        rule: which of the policy's ways led to it; the policy's name where there is one way.
    """

    candidate: Candidate
    rule: str


class ParentPolicy(Protocol):
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

    def welcome(self, candidate: Candidate) -> None:
        """Take in a guest: a program that the island began with, or that another one sent."""

    def tell(self, outcome: ParentOutcome) -> None:
        """Take in what became of a parent, in the order of the island's iterations.

        Raises:
            ValueError: this iteration or a later one was told before. A policy that remembers
                nothing does not notice.
        """


class Memoryless:
    """What the policies share that look at nothing but the candidates."""

    def welcome(self, candidate: Candidate) -> None:
        """Learn nothing."""

    def tell(self, outcome: ParentOutcome) -> None:
        """Learn nothing."""
