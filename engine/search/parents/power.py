"""Power: candidate i with probability proportional to max(eps, s_i)^gamma.

s_i = (score_i - worst) / (best - worst), turned round for a problem that minimises, so the weights
do not depend on the scale or the sign of a problem's scores; where all scores are equal, all s_i
are 1. The best has s_i = 1, so with eps at most 1 the weights have a finite sum above 0, whatever
gamma is. gamma = 0 is a uniform choice, gamma = 1 fitness-proportional selection.

Covers: the weights by score. Does not cover weights by rank (``ranking``), which outliers do not
move.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.core import Candidate, Direction
from engine.search.parents.policy import Draw, Memoryless
from engine.search.parents.scores import normalised
from engine.search.race import winner


class Power(Memoryless):
    """A choice weighted by a power of the score."""

    def __init__(self, *, direction: Direction, gamma: float = 1.0, epsilon: float = 0.001) -> None:
        """Keep the exponent and the floor.

        Args:
            direction: of the scores.
            gamma: 0 or more; the larger, the greedier.
            epsilon: the least share that a candidate counts for, above 0, at most 1.

        Raises:
            ValueError: one of them is out of its range.
        """
        if not 0 <= gamma < math.inf:
            raise ValueError(f"gamma is {gamma}; it must be 0 or more and finite")
        if not 0 < epsilon <= 1:
            raise ValueError(f"epsilon is {epsilon}; it must be above 0 and at most 1")
        self._direction = direction
        self._gamma = gamma
        self._epsilon = epsilon

    def choose(self, candidates: Sequence[Candidate], *, u: float, key: int) -> Draw:
        """Choose one of ``candidates``, at least one; ``u`` does not matter."""
        log_weights = self._log_weights(candidates)
        place = winner([each.id for each in candidates], log_weights, key=key)
        return Draw(candidate=candidates[place], rule="power")

    def _log_weights(self, candidates: Sequence[Candidate]) -> NDArray[np.float64]:
        shares = np.maximum(self._epsilon, normalised(candidates, self._direction))
        with np.errstate(over="ignore"):  # an infinite gamma ln s is a weight of 0
            log_weights: NDArray[np.float64] = self._gamma * np.log(shares)
        return log_weights
