"""When a further island is opened: AdaEvolve's rule, once few children improve their islands.

Source: Cemri et al., "AdaEvolve: adaptive LLM driven zeroth-order optimization", 2026, global
adaptation; the rule and its numbers are those of its code. Of all children so far, of all islands,
n have been judged, n' of them before the last island was opened, and b were better than the best
program that their island had before, guests included. When an iteration is over, an island is
opened if there are fewer than M,

    n - n' >= C,                 C = 30,                (1)
    (1 + b) / (1 + n) < theta,   theta = 0.015,         (2)

and M = 5. (1) holds before the first one. The ones in (2) are the initial program, which counts as
a child that improved; so with this theta no island is opened before the 66th child. The rule looks
at all islands together: one that still improves keeps further ones from being opened, and as
nothing is forgotten, so does one that improved a lot long ago.

The new island begins with the five best programs of all islands (`FOUNDERS`), of those with a cell
where there are archives, and takes its place at the end of the ring.

Where this differs from its code:

- An iteration has one child there, so C, which it counts in iterations, is counted in children. As
  in the bandit (``engine.search.parents.islands``) an iteration whose children were all refused
  counts as one child that improved nothing.
- Its archives hold 20 programs, and a child that they turn away is not counted. Here each child
  counts that was judged, those that failed included.
- A new island is not told the scores of its first programs there, so whatever its first child is
  worth counts as an improvement, and earns the whole reward of the bandit. Here they are guests.
- Islands hold copies there, of the initial program and of migrants, so that several of the five may
  be one program. Here they are five programs.
- Each new island has other weights there of what makes an elite. The archives here
  (``engine.search.archive``) have none, so a new island differs by what it begins with, and by
  chance.

Covers: the rule. Does not cover what an opened island consists of: ``engine.search.archipelago``.
"""

from __future__ import annotations

from engine.core import Candidate, Direction
from engine.search.parents import ParentOutcome

FOUNDERS = 5
"""Programs that a new island begins with."""


class Spawning:
    """Counts the children that improved their islands, and says when to open another one."""

    def __init__(self, *, most: int, below: float, every: int, direction: Direction) -> None:
        """Start with nothing told.

        Args:
            most: M, above which no island is opened.
            below: theta, above 0 and at most 1.
            every: C, 1 or more.
            direction: of the scores.

        Raises:
            ValueError: ``below`` or ``every`` is out of its range.
        """
        if not 0 < below <= 1:
            raise ValueError(f"below is {below}; it must be above 0 and at most 1")
        if every < 1:
            raise ValueError(f"every is {every}; it must be 1 or more")
        self._most = most
        self._below = below
        self._every = every
        self._direction = direction
        self._best: dict[int, float] = {}  # by island
        self._judged = 0  # n
        self._judged_before: int | None = None  # n'; None before the first is opened
        self._improved = 0  # b

    @property
    def productivity(self) -> float:
        """The share of the children that improved their island, as in (2)."""
        return (1 + self._improved) / (1 + self._judged)

    def is_due(self, *, islands: int) -> bool:
        """Whether to open an island now, where there are so many."""
        if islands >= self._most:
            return False
        is_early = (
            self._judged_before is not None and self._judged - self._judged_before < self._every
        )
        return not is_early and self.productivity < self._below  # (1), (2)

    def opened(self) -> None:
        """Take in that an island was opened: (1) counts from here."""
        self._judged_before = self._judged

    def welcome(self, island: int, candidate: Candidate) -> None:
        """Take in an island's guest, which the island's children have to be better than."""
        self._raise_best(island, candidate.score)

    def tell(self, island: int, outcome: ParentOutcome) -> None:
        """Take in an iteration of an island, its children in the order of their places."""
        for score in [child.score for child in outcome.children] or [None]:
            self._judged += 1
            if score is not None:
                self._improved += self._raise_best(island, score)

    def _raise_best(self, island: int, score: float) -> bool:
        """Keep a score that is the island's new best; return whether it is."""
        best = self._best.get(island)
        is_better = best is None or self._direction.better(score, than=best)
        if is_better:
            self._best[island] = score
        return is_better
