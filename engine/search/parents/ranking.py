"""Rank: candidate i with probability proportional to r_i^-alpha, r_i its rank, 1 for the best.

With alpha = 1 the roulette by rank of CodeEvolve, whose ranks count from 0 and weigh
1 / (1 + rank); with any alpha ShinkaEvolve's power law. Theirs give equal scores different ranks,
by the order in which they stand; here they share the mean of their ranks, so that equal ones are
chosen equally often. An outlier counts no more than its rank, and a new candidate moves the others
by one rank at most.

Covers: the weights by rank. Does not cover weights by score (``power``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from engine.core import Candidate, Direction
from engine.search.parents.policy import Draw, Memoryless
from engine.search.parents.scores import ranks, scores_of
from engine.search.race import winner


class Ranking(Memoryless):
    """A choice weighted by a power of the rank."""

    def __init__(self, *, direction: Direction, alpha: float = 1.0) -> None:
        """Keep the exponent.

        Args:
            direction: of the scores.
            alpha: 0 or more; 0 is a uniform choice, and the larger, the greedier.

        Raises:
            ValueError: ``alpha`` is out of its range.
        """
        if not 0 <= alpha < math.inf:
            raise ValueError(f"alpha is {alpha}; it must be 0 or more and finite")
        self._direction = direction
        self._alpha = alpha

    def choose(self, candidates: Sequence[Candidate], *, u: float, key: int) -> Draw:
        """Choose one of ``candidates``, at least one; ``u`` does not matter."""
        places = ranks(scores_of(candidates), self._direction)
        with np.errstate(over="ignore"):  # an infinite alpha ln r is a weight of 0
            # Over the least rank, so that the best weigh 1 where they share a rank above 1.
            log_weights = -self._alpha * np.log(places / places.min())
        place = winner([each.id for each in candidates], log_weights, key=key)
        return Draw(candidate=candidates[place], rule="rank")
