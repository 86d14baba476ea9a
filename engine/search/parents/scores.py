"""Scores made comparable: order, scaling and ranks, for either direction and any size or sign.

Does not cover what a policy makes of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.core import Candidate, Direction
from engine.search import race
from engine.search.roster import Roster


def rank(candidate: Candidate, direction: Direction) -> tuple[float, int]:
    """Return what is smaller for the better candidate, and of equal ones for the shorter."""
    return direction.key(candidate.score), len(candidate.program)


def best_of(candidates: Sequence[Candidate], direction: Direction) -> Candidate:
    """Return the best candidate; of equal ones the shortest, then the first."""
    if isinstance(candidates, Roster):
        return candidates.best(direction)
    return min(candidates, key=lambda each: rank(each, direction))


def normalised(candidates: Sequence[Candidate], direction: Direction) -> NDArray[np.float64]:
    """Return the scores from 0 (the worst) to 1 (the best), shape (len(candidates),)."""
    return scaled(scores_of(candidates), direction)


def scores_of(candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """Return the scores as they are, shape (len(candidates),); those that a roster keeps."""
    if isinstance(candidates, Roster):
        return candidates.scores
    return np.array([candidate.score for candidate in candidates], dtype=np.float64)


def hashes_of(candidates: Sequence[Candidate]) -> NDArray[np.uint64]:
    """Return what races are drawn by, shape (len(candidates),); what a roster keeps."""
    if isinstance(candidates, Roster):
        return candidates.hashes
    return race.hashes_of([each.id for each in candidates])


def scaled(scores: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
    """Return the scores from 0 (the worst) to 1 (the best); all 1 if all are equal; same shape.

    Args:
        scores: finite, at least one.
        direction: of the scores.
    """
    scores = scores / max(1.0, float(np.abs(scores).max()))  # or the span could be infinite
    if direction is Direction.MINIMISE:
        scores = -scores
    span = scores.max() - scores.min()
    if span == 0:
        return np.ones_like(scores)
    result: NDArray[np.float64] = (scores - scores.min()) / span
    return result


def ranks(scores: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
    """Return each score's rank, 1 for the best; equal ones share the mean of theirs; same shape."""
    upward = -scores if direction is Direction.MAXIMISE else scores
    _, group, sizes = np.unique(upward, return_inverse=True, return_counts=True)
    mean_ranks: NDArray[np.float64] = np.cumsum(sizes) - (sizes - 1) / 2
    return mean_ranks[group]
