"""Which guidance a call begins with.

As CodeEvolve's code (version 0.3) has it: the initial one while an island makes its first
population; any, uniformly, to explore; otherwise the one of rank i (1 for the best score, equal
ones share the mean of theirs, those without a score come last) with probability proportional to
1 / i.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.core import Direction
from engine.search.parents import EXPLORE, FIRST
from engine.search.roster import ranks
from engine.store import TriedGuidance

_STREAM = 2  # of a proposal's seed; 0 and 1 are an infill's place and the sampling


def rewrites(rule: str) -> bool:
    """Return whether a parent that was drawn by a rule has guidance rewritten."""
    return rule in (EXPLORE, FIRST)


def chosen(
    tried: Sequence[TriedGuidance], *, rule: str, seed: int, direction: Direction
) -> str | None:
    """Return the id of the guidance that a call begins with.

    Args:
        tried: of the island, the initial one first.
        rule: by which the parent was drawn.
        seed: the proposal's.
        direction: of the scores.
    """
    if rule == FIRST:
        return tried[0].id
    shares = np.ones(len(tried)) if rule == EXPLORE else weights(tried, direction)
    rng = np.random.default_rng([seed, _STREAM])
    return tried[int(rng.choice(len(tried), p=shares / shares.sum()))].id


def weights(tried: Sequence[TriedGuidance], direction: Direction) -> NDArray[np.float64]:
    """Return 1 / rank of each, shape (len(tried),)."""
    worst = -np.inf if direction is Direction.MAXIMISE else np.inf
    scores = np.array([worst if each.score is None else each.score for each in tried])
    inverse: NDArray[np.float64] = 1 / ranks(scores, direction)
    return inverse
