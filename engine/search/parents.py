"""How a parent is chosen: rEVOLVE's hybrid of greedy, uniform and weighted choice.

Source: the pseudocode in the rEVOLVE write-up, "The algorithm". With u uniform on [0, 1): the
best candidate if u < p_elite, a uniform choice if u < p_elite + p_uniform, and otherwise
candidate i with probability proportional to max(eps, s_i)^gamma.

The write-up leaves open how scores become the s_i. Here s_i = (score_i - worst) / (best - worst),
turned round for a problem that minimises, so the weights do not depend on the scale or the sign of
a problem's scores; where all scores are equal, all s_i are 1. The best has s_i = 1, so with eps at
most 1 the weights have a finite sum above 0, whatever gamma is.

Both random choices are races (``engine.search.race``), so the parent that is drawn while a few
verdicts are not in yet is mostly the one that is drawn once they are: with the same u and key, a
uniform choice changes only to a new candidate; a weighted one also where a new best or worst score
changes the s_i of the others so much that another wins.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.core import Candidate, Direction
from engine.search.race import winner
from engine.settings import ParentSettings


def rank(candidate: Candidate, direction: Direction) -> tuple[float, int]:
    """Return what is smaller for the better candidate, and of equal ones for the shorter."""
    score = candidate.score if direction is Direction.MINIMISE else -candidate.score
    return score, len(candidate.program)


def best_of(candidates: Sequence[Candidate], direction: Direction) -> Candidate:
    """Return the best candidate; of equal ones the shortest, then the first."""
    return min(candidates, key=lambda each: rank(each, direction))


def choose_parent(
    candidates: Sequence[Candidate],
    *,
    direction: Direction,
    settings: ParentSettings,
    u: float,
    key: int,
) -> Candidate:
    """Return one of ``candidates``, which must not be empty.

    Args:
        candidates: whom to choose among; the order matters only to `best_of`.
        direction: of the scores.
        settings: how to choose.
        u: which of the three ways to take, from 0 to below 1.
        key: of the race, from 0 to 2^64 - 1.
    """
    if u < settings.p_elite:
        return best_of(candidates, direction)
    log_weights = np.zeros(len(candidates))
    if u >= settings.p_elite + settings.p_uniform:
        shares = np.maximum(settings.epsilon, normalised(candidates, direction))
        with np.errstate(over="ignore"):  # an infinite gamma ln s is a weight of 0
            log_weights = settings.gamma * np.log(shares)
    return candidates[winner([each.id for each in candidates], log_weights, key=key)]


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
