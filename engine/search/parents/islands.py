"""AdaEvolve's choice between islands: a bandit whose rewards are decayed improvements.

Source: Cemri et al., "AdaEvolve: adaptive LLM driven zeroth-order optimization", 2026, global
adaptation, and its code. For each child of island i, delta is its improvement of the island's
best as a share of the best of all islands (``improvement``), and

    r_i <- rho r_i + delta,   v_i <- rho v_i + 1,   n_i <- n_i + 1,   rho = 0.9.   (1)

The next iteration is for the island with the largest

    r_i / v_i + c sqrt(ln(N + 1) / n_i),   c = 1.41,   N = sum of the n_i,          (2)

after each has had three children. Rewards decay, so that an old breakthrough is forgotten, and
visits with them, so that the mean does not go to 0; the bonus counts all visits. A guest raises
the best of an island, and of all, but earns it no reward. An iteration whose children were all
refused counts as one child without a score, or an island of such would call for ever.

**What the choice is worth here.** AdaEvolve runs one iteration at a time, so its choice shares out
the calls. Here every island that may call does so as long as there is room, and an island whose
verdicts are not in is not among those asked about. So with room for all, the order decides
nothing but who comes first into the same batch, and each island gets as many calls as it is fast.
The choice shares out calls where the room is short: with ``pipeline.overlap=false``, where one call
at a time is AdaEvolve's own setting, and where ``pipeline.children`` or ``pipeline.candidates`` let
fewer islands in than wait. Even then (1) looks back about ten children: a gain of 5 % earns 0.005,
which (2) takes back with one call of 8 children where each island has had 200. On ``signal`` with
mutations, four islands had 25 or 26 calls each of 800 candidates, one call at a time.

Covers: whose turn it is. Does not cover when a further island is opened
(``engine.search.spawning``); one that is has an arm of its own from then on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core import Candidate, Direction
from engine.search.order import in_order
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
    """Decayed-magnitude UCB over islands."""

    def __init__(
        self,
        *,
        islands: int,
        direction: Direction,
        decay: float = 0.9,
        exploration: float = 1.41,
    ) -> None:
        """Start with nothing told.

        Args:
            islands: how many there are at first, 1 or more.
            direction: of the scores.
            decay: rho, from 0 to below 1.
            exploration: c, 0 or more.

        Raises:
            ValueError: one of them is out of its range.
        """
        if islands < 1:
            raise ValueError(f"islands is {islands}; it must be 1 or more")
        if not 0 <= decay < 1:
            raise ValueError(f"decay is {decay}; it must be 0 or more and below 1")
        if not 0 <= exploration < math.inf:
            raise ValueError(f"exploration is {exploration}; it must be 0 or more and finite")
        self._direction = direction
        self._decay = decay
        self._exploration = exploration
        self._arms = [_Arm() for _ in range(islands)]
        self._best: float | None = None  # of all islands

    def choose(self, islands: Sequence[int], *, key: int) -> int:
        """Return which of some islands is to call next; asking again changes nothing.

        Of several that have not had enough children, one by chance, the same with one more or one
        less of them unless that one is chosen; of several with an equal bound, the first named.

        Args:
            islands: their numbers, at least one.
            key: of the draw, from 0 to 2^64 - 1.

        Raises:
            ValueError: there is no such island.
        """
        fresh = [i for i in islands if self._arm(i).visits < LEAST_VISITS]
        if fresh:
            return fresh[winner([f"island {i}" for i in fresh], np.zeros(len(fresh)), key=key)]
        bounds = self.bounds()
        return max(islands, key=lambda island: bounds[island])

    def bounds(self) -> list[float]:
        """Return (2) for each island; infinite for one that was never visited."""
        log_all = math.log(sum(arm.visits for arm in self._arms) + 1)
        return [
            arm.reward / arm.recent + self._exploration * math.sqrt(log_all / arm.visits)
            if arm.visits
            else math.inf
            for arm in self._arms
        ]

    def add(self) -> None:
        """Take in that a further island was opened: it has the next number, and no children."""
        self._arms.append(_Arm())

    def welcome(self, island: int, candidate: Candidate) -> None:
        """Take in an island's guest: one that it began with, or that another island sent.

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
        arm.last = in_order(outcome.iteration, after=arm.last)
        for score in [child.score for child in outcome.children] or [None]:
            delta = relative_gain(
                score, best=arm.best, reference=self._best, direction=self._direction
            )
            arm.reward = self._decay * arm.reward + delta  # (1)
            arm.recent = self._decay * arm.recent + 1
            arm.visits += 1
            self._raise_best(arm, score)

    def _raise_best(self, arm: _Arm, score: float | None) -> None:
        """Keep a score that is the island's new best, or that of all."""
        if score is None:
            return
        if self._best is None or self._direction.better(score, self._best):
            self._best = score
        if arm.best is None or self._direction.better(score, arm.best):
            arm.best = score

    def _arm(self, island: int) -> _Arm:
        if not 0 <= island < len(self._arms):
            raise ValueError(f"there is no island {island}; there are {len(self._arms)}, from 0")
        return self._arms[island]
