"""AdaEvolve's choice between islands, and when it opens a new one.

Source: Cemri et al., "AdaEvolve: adaptive LLM driven zeroth-order optimization", 2026, global
adaptation, and its code. For each child of island i, delta is its improvement of the island's
best as a share of the best of all islands (``improvement``), and

    r_i <- rho r_i + delta,   v_i <- rho v_i + 1,   n_i <- n_i + 1,   rho = 0.9.   (1)

The next iteration is for the island with the largest

    r_i / v_i + c sqrt(ln(N + 1) / n_i),   c = 1.41,   N = sum of the n_i,          (2)

after each has had three children. Rewards decay, so that an old breakthrough is forgotten, and
visits with them, so that the mean does not go to 0; the bonus counts all visits. A guest raises
the best of an island, and of all, but earns it no reward.

A new island is opened when all of this holds, as in its code: there are fewer than 5; at least 30
iterations are over since the last one was opened; and of all children told, less than a share of
0.015 were a new best of their island. The initial program counts as one that was. Its code then
copies the five best programs of all islands to the new one. The paper states another condition,
that G (``adaevolve``) of every island has fallen to a threshold; no source at hand gives its
value, so the rule of the code is what is here.

Covers: whose turn it is, and whether an island is missing. Does not cover making one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from engine.core import Candidate, Direction
from engine.search.parents.improvement import relative_gain
from engine.search.parents.policy import ParentOutcome
from engine.search.race import winner

LEAST_VISITS = 3
"""Children that each island gets before they are compared."""


@dataclass(kw_only=True, slots=True)
class _Arm:
    """What is known of an island: its best score, and (1)."""

    best: float | None = None
    reward: float = 0.0  # r
    recent: float = 0.0  # v
    visits: int = 0  # n
    last: int = -1  # its last iteration told


class IslandBandit:
    """Decayed-magnitude UCB over islands, whose number may grow."""

    def __init__(
        self,
        *,
        islands: int,
        direction: Direction,
        decay: float = 0.9,
        exploration: float = 1.41,
        most_islands: int = 5,
        productivity: float = 0.015,
        cooldown: int = 30,
    ) -> None:
        """Start with nothing told.

        Args:
            islands: how many there are, 1 or more.
            direction: of the scores.
            decay: rho, from 0 to below 1.
            exploration: c, 0 or more.
            most_islands: how many there may be at most for one to be missing.
            productivity: share of improving children below which one is missing, from 0 to 1.
            cooldown: iterations, over all islands, before another one can be missing, 0 or more.

        Raises:
            ValueError: one of them is out of its range.
        """
        if islands < 1:
            raise ValueError(f"islands is {islands}; it must be 1 or more")
        if not 0 <= decay < 1:
            raise ValueError(f"decay is {decay}; it must be 0 or more and below 1")
        if not 0 <= exploration < math.inf:
            raise ValueError(f"exploration is {exploration}; it must be 0 or more and finite")
        if not 0 <= productivity <= 1:
            raise ValueError(f"productivity is {productivity}; it must be from 0 to 1")
        if cooldown < 0:
            raise ValueError(f"cooldown is {cooldown}; it must be 0 or more")
        self._direction = direction
        self._decay = decay
        self._exploration = exploration
        self._most = most_islands
        self._productivity = productivity
        self._cooldown = cooldown
        self._arms = [_Arm() for _ in range(islands)]
        self._best: float | None = None  # of all islands
        self._improved = 1  # the initial program
        self._tried = 1
        self._since_opened = cooldown  # iterations; the first one need not wait

    @property
    def islands(self) -> int:
        """How many there are; they are numbered from 0."""
        return len(self._arms)

    def choose(self, *, key: int) -> int:
        """Return the island whose turn it is; asking again changes nothing.

        Of several that have not had enough children, one by chance; of several with an equal
        bound, the first.

        Args:
            key: of the draw, from 0 to 2^64 - 1.
        """
        fresh = [i for i, arm in enumerate(self._arms) if arm.visits < LEAST_VISITS]
        if fresh:
            return fresh[winner([f"island {i}" for i in fresh], np.zeros(len(fresh)), key=key)]
        return int(np.argmax(self.bounds()))

    def bounds(self) -> list[float]:
        """Return (2) for each island; infinite for one that was never visited."""
        log_all = math.log(sum(arm.visits for arm in self._arms) + 1)
        return [
            arm.reward / arm.recent + self._exploration * math.sqrt(log_all / arm.visits)
            if arm.visits
            else math.inf
            for arm in self._arms
        ]

    def welcome(self, island: int, candidate: Candidate) -> None:
        """Take in an island's guest: the initial program, or one that another island sent.

        Raises:
            ValueError: there is no such island.
        """
        self._raise_best(self._arm(island), candidate.score)

    def tell(self, island: int, outcome: ParentOutcome) -> None:
        """Take in an iteration of an island.

        Raises:
            ValueError: there is no such island, or this iteration or a later one of the island
                was told before.
        """
        arm = self._arm(island)
        if outcome.iteration <= arm.last:
            raise ValueError(
                f"iteration {outcome.iteration} of island {island} was told after {arm.last}"
            )
        arm.last = outcome.iteration
        self._since_opened += 1
        for child in outcome.children:
            delta = relative_gain(
                child.score, best=arm.best, reference=self._best, direction=self._direction
            )
            arm.reward = self._decay * arm.reward + delta  # (1)
            arm.recent = self._decay * arm.recent + 1
            arm.visits += 1
            self._tried += 1
            self._improved += self._raise_best(arm, child.score)

    @property
    def is_missing_one(self) -> bool:
        """Whether a new island should be opened now."""
        return (
            len(self._arms) < self._most
            and self._since_opened >= self._cooldown
            and self._improved / self._tried < self._productivity
        )

    def open(self) -> int:
        """Add an island without a program; return its number."""
        self._arms.append(_Arm())
        self._since_opened = 0
        return len(self._arms) - 1

    def _raise_best(self, arm: _Arm, score: float | None) -> bool:
        """Return whether a score is the island's new best, and keep it."""
        if score is None:
            return False
        if self._best is None or self._direction.better(score, self._best):
            self._best = score
        if arm.best is not None and not self._direction.better(score, arm.best):
            return False
        arm.best = score
        return True

    def _arm(self, island: int) -> _Arm:
        if not 0 <= island < len(self._arms):
            raise ValueError(f"there is no island {island}; there are {len(self._arms)}, from 0")
        return self._arms[island]
