"""Power: candidate i with probability proportional to max(eps, s_i)^gamma.

s_i = (score_i - worst) / (best - worst), turned round for a problem that minimises, so the weights
do not depend on the scale or the sign of a problem's scores; where all scores are equal, all s_i
are 1. The best has s_i = 1, so with eps at most 1 the weights have a finite sum above 0, whatever
gamma is. gamma = 0 is a uniform choice, gamma = 1 fitness-proportional selection.
"""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from engine.core import Candidate, Direction
from engine.search.parents import PARENTS, Draw, ParentPolicy, ParentSettings
from engine.search.race import winner
from engine.search.roster import hashes_of, normalised
from engine.section import Number, section

Exponent = Annotated[Number, Field(ge=0)]
Floor = Annotated[Number, Field(gt=0, le=1)]


@PARENTS.register("power")
@section
class PowerSettings(ParentSettings):
    """The weights' exponent and floor.

    Attributes:
        gamma: 0 or more; the larger, the greedier.
        epsilon: the least share that a candidate counts for, above 0, at most 1.
    """

    gamma: Exponent = 3.0
    epsilon: Floor = 0.001

    def make(self, *, direction: Direction) -> "Power":
        """Return the policy of an island."""
        return Power(self, direction=direction)


class Power(ParentPolicy):
    """A choice weighted by a power of the score."""

    def __init__(self, settings: PowerSettings, *, direction: Direction) -> None:
        """``direction``: of the scores."""
        self._settings = settings
        self._direction = direction

    def choose(self, candidates: Sequence[Candidate], *, u: float, key: int) -> Draw:
        """Choose one of ``candidates``, at least one; ``u`` does not matter."""
        shares = normalised(candidates, self._direction)
        weighed = power(shares, gamma=self._settings.gamma, epsilon=self._settings.epsilon)
        place = winner(hashes_of(candidates), weighed, key=key)
        return Draw(candidate=candidates[place], rule="power")


def power(shares: NDArray[np.float64], *, gamma: float, epsilon: float) -> NDArray[np.float64]:
    """Return the logarithms of the weights of s_i, same shape; see `PowerSettings`."""
    with np.errstate(over="ignore"):  # an infinite gamma ln s is a weight of 0
        log_weights: NDArray[np.float64] = gamma * np.log(np.maximum(epsilon, shares))
    return log_weights
