"""Scores of any problem made comparable: who is better, by what share of the span, at which rank.

Covers: order, scaling and ranks, for either direction, whatever the scores' size or sign. Does not
cover what a policy makes of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.core import Candidate, Direction


def rank(candidate: Candidate, direction: Direction) -> tuple[float, int]:
    """Return what is smaller for the better candidate, and of equal ones for the shorter."""
    score = candidate.score if direction is Direction.MINIMISE else -candidate.score
    return score, len(candidate.program)


def best_of(candidates: Sequence[Candidate], direction: Direction) -> Candidate:
    """Return the best candidate; of equal ones the shortest, then the first."""
    return min(candidates, key=lambda each: rank(each, direction))


def normalised(candidates: Sequence[Candidate], direction: Direction) -> NDArray[np.float64]:
    """Return the scores from 0 (the worst) to 1 (the best), shape (len(candidates),)."""
    return scaled(scores_of(candidates), direction)


def scores_of(candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """Return the scores as they are, shape (len(candidates),)."""
    return np.array([candidate.score for candidate in candidates], dtype=np.float64)


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
