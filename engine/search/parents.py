"""How a parent is chosen: rEVOLVE's hybrid of greedy, uniform and weighted choice.

Source: the pseudocode in the rEVOLVE write-up, "The algorithm". With u uniform on [0, 1): the
best candidate if u < p_elite, a uniform choice if u < p_elite + p_uniform, and otherwise
candidate i with probability proportional to max(eps, s_i)^gamma.

The write-up leaves open how scores become the s_i. Here s_i = (score_i - worst) / (best - worst),
turned round for a problem that minimises, so the weights do not depend on the scale or the sign of
a problem's scores; where all scores are equal, all s_i are 1. The best has s_i = 1, so with eps at
most 1 the weights have a finite sum above 0, whatever gamma is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.core import Candidate, Direction
from engine.settings import ParentSettings


def best_of(candidates: Sequence[Candidate], direction: Direction) -> Candidate:
    """Return the best candidate; of equal ones the shortest, then the first."""
    best = candidates[0]
    for candidate in candidates[1:]:
        shorter = len(candidate.program) < len(best.program)
        if direction.better(candidate.score, best.score) or (
            candidate.score == best.score and shorter
        ):
            best = candidate
    return best


def choose_parent(
    candidates: Sequence[Candidate],
    *,
    direction: Direction,
    settings: ParentSettings,
    rng: np.random.Generator,
) -> Candidate:
    """Return one of ``candidates``, which must not be empty."""
    u = rng.random()
    if u < settings.p_elite:
        return best_of(candidates, direction)
    if u < settings.p_elite + settings.p_uniform:
        return candidates[int(rng.integers(len(candidates)))]
    weights = np.maximum(settings.epsilon, normalised(candidates, direction)) ** settings.gamma
    return candidates[int(rng.choice(len(candidates), p=weights / weights.sum()))]


def normalised(candidates: Sequence[Candidate], direction: Direction) -> NDArray[np.float64]:
    """Return the scores from 0 (the worst) to 1 (the best), shape (len(candidates),)."""
    scores = np.array([candidate.score for candidate in candidates], dtype=np.float64)
    scores = scores / max(1.0, float(np.abs(scores).max()))  # or the span could be infinite
    if direction is Direction.MINIMISE:
        scores = -scores
    span = scores.max() - scores.min()
    if span == 0:
        return np.ones_like(scores)
    result: NDArray[np.float64] = (scores - scores.min()) / span
    return result
