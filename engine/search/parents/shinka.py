"""Shinka: good scores and few children, as ShinkaEvolve weighs parents.

Source: Lange, Imajuku and Cetin, "ShinkaEvolve: towards open-ended and sample-efficient program
evolution", 2025, section 3.1; the division by MAD and lambda are its code's. With m the median of
the scores, MAD the median of |score_i - m| of an archive of the best programs, and n_i the number
of children of candidate i,

    w_i = sigmoid(lambda (score_i - m) / max(MAD, 1e-6)) / (1 + n_i),     lambda = 10,

turned round for a problem that minimises. The parent is one of the archive. There all islands share
an archive of 40, of which each draws its own programs; here each has one, as a run's islands may be
on several machines. The floor of the MAD is in the unit of the scores, as it
is there: where most scores are equal, differences far below 1e-6 do not count.

All evaluated children count, also those without a score: each was an attempt. Children that were
refused are not told, and do not count.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from engine.core import Candidate, Direction
from engine.search.parents import PARENTS, Draw, ParentOutcome, ParentPolicy, ParentSettings
from engine.search.race import winner
from engine.search.roster import best_few, hashes_of, scores_of
from engine.section import Count, Number, section

LEAST_DEVIATION = 1e-6
_LARGE = 1e300  # scores beyond it are taken in a larger unit, or their sums could be infinite


@PARENTS.register("shinka")
@section
class ShinkaSettings(ParentSettings):
    """How much the scores count.

    Attributes:
        archive: the most programs that it holds, the island's best ones.
        sharpness: lambda; 0 leaves only the numbers of children to count.
    """

    archive: Count = 8
    sharpness: Number = Field(default=10.0, ge=0)

    def make(self, *, direction: Direction) -> "Shinka":
        """Return the policy of an island, with no parent tried."""
        return Shinka(self, direction=direction)


class Shinka(ParentPolicy):
    """A choice weighted by how far a score is above the median, and how seldom it was tried.

    A migrant's children on other islands are none of this one's attempts.
    """

    def __init__(self, settings: ShinkaSettings, *, direction: Direction) -> None:
        """``direction``: of the scores."""
        self._archive = settings.archive
        self._sharpness = settings.sharpness
        self._direction = direction
        self._children: Counter[str] = Counter()

    def choose(self, candidates: Sequence[Candidate], *, u: float, key: int) -> Draw:
        """Choose one of ``candidates``, at least one; ``u`` does not matter."""
        candidates = best_few(candidates, self._archive, self._direction)
        children = np.array([self._children[each.id] for each in candidates], dtype=np.float64)
        distances = self._sharpness * self._deviations(scores_of(candidates))
        log_weights = -np.logaddexp(0.0, -distances) - np.log1p(children)
        place = winner(hashes_of(candidates), log_weights, key=key)
        return Draw(candidate=candidates[place], rule="shinka")

    def tell(self, outcome: ParentOutcome) -> None:
        """Count the children of a parent."""
        self._children[outcome.parent] += len(outcome.children)

    def _deviations(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how many MADs each score is better than the median, shape as ``scores``."""
        unit = max(1.0, float(np.abs(scores).max()) / _LARGE)
        scores = scores / unit
        above = scores - np.median(scores)
        if self._direction is Direction.MINIMISE:
            above = -above
        spread = max(float(np.median(np.abs(above))), LEAST_DEVIATION)
        limit = np.finfo(np.float64).max / max(1.0, self._sharpness)
        with np.errstate(over="ignore"):
            deviations: NDArray[np.float64] = np.clip(above / spread, -limit, limit)
        return deviations
