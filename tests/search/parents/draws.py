"""What the tests of the parent policies share: candidates, and how often each is drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.stats import chi2

from engine.core import Candidate, Direction
from engine.search.parents import PARENTS, Offspring, ParentOutcome, ParentPolicy

DRAWS = 4000


def new_policy(
    policy: str, *, direction: Direction = Direction.MAXIMISE, **parameters: float
) -> ParentPolicy:
    """Return a policy that was told nothing."""
    return PARENTS.read({"policy": policy, **parameters}).make(direction=direction)


def candidates(*scores: float) -> list[Candidate]:
    """Return candidates c0, c1 and so on, of equal length."""
    return [Candidate(id=f"c{i}", program="x = 1", score=score) for i, score in enumerate(scores)]


def outcome(iteration: int, parent: str, **children: float | None) -> ParentOutcome:
    return ParentOutcome(
        iteration=iteration,
        parent=parent,
        children=tuple(Offspring(id=name, score=score) for name, score in children.items()),
    )


def counts(
    policy: ParentPolicy, among: Sequence[Candidate], *, seed: int = 1, draws: int = DRAWS
) -> list[int]:
    """Return how often each candidate is chosen."""
    rng = np.random.default_rng(seed)
    chosen = Counter(
        policy.choose(
            among, u=rng.random(), key=int(rng.integers(2**64, dtype=np.uint64))
        ).candidate.id
        for _ in range(draws)
    )
    return [chosen[each.id] for each in among]


def p_value(counted: Sequence[int], shares: Sequence[float]) -> float:
    """Return the probability of counts at least as far from what the shares lead to expect.

    The shares need not add up to 1. One that expects nothing has to have been counted never.
    """
    expected = np.array(shares) / sum(shares) * sum(counted)
    if any(np.array(counted)[expected == 0]):
        return 0.0
    if np.count_nonzero(expected) == 1:
        return 1.0
    distance = sum((c - e) ** 2 / e for c, e in zip(counted, expected, strict=True) if e > 0)
    return float(chi2.sf(distance, df=np.count_nonzero(expected) - 1))
