"""Which programs of a pool go to which islands: clusters, mixed a little.

Source: TurboEvolve, section 3.3. Each island begins from one cluster of the pool, a mode of it;
copies of other clusters' good programs take the places of its worst ones, so that islands overlap
enough to be recombined later. With C_i the clusters, n_i their sizes, d the mixing ratio and rho
the elite-protection ratio:

- the shared pool P holds copies of the top ceil(d n_i) programs of each cluster, by score;
- r_i = floor(d n_i) programs, drawn uniformly from P without C_i, join C_i;
- r_i programs go from the bottom of C_i, so that its size stays, but none of its top
  ceil(rho n_i).

What the paper leaves open is settled here as follows. Programs are drawn without replacement. Only
C_i's own programs go, not those that have just joined. If fewer than r_i programs can be drawn, or
fewer may go, that many are exchanged, so that size and elites stay as they are. Of programs with
equal scores the shorter ranks first, then the earlier. A ratio counts as the decimal that it is
written as, so d = 0.07 of 100 programs are 7. If there are fewer different programs than islands,
there are as many clusters as programs; the islands get them in turn, each with its own draws.

Does not cover how an island takes its programs in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from engine.core import Candidate, Direction
from engine.embedding import Vectors
from engine.pool.clusters import clusters
from engine.search.roster import rank

_STREAM = 0x4D  # keeps the draws apart from others that derive from the same seed


def allocate(
    candidates: Sequence[Candidate],
    vectors: Vectors,
    *,
    islands: int,
    mixing: float,
    elites: float,
    direction: Direction,
    seed: int,
) -> tuple[tuple[Candidate, ...], ...]:
    """Return the programs of each island, the best first.

    Args:
        candidates: the pool's programs with a score, each id once.
        vectors: their embeddings, in the same order, finite, shape (len(candidates), d).
        islands: how many there are, 1 or more.
        mixing: d, from 0 (clusters stay as they are) to 1.
        elites: rho, from 0 to 1 (clusters stay as they are).
        direction: of the scores.
        seed: the run's; the same arguments give the same programs.

    Raises:
        ValueError: there is no island, a ratio is out of range, or the vectors are not finite or
            not as many as the candidates.
    """
    for name, ratio in (("mixing", mixing), ("elites", elites)):
        if not 0 <= ratio <= 1:
            raise ValueError(f"expected {name} from 0 to 1, but it is {ratio}")
    if len(vectors) != len(candidates):
        raise ValueError(f"{len(candidates)} candidates have {len(vectors)} vectors")
    ranked = [
        sorted((candidates[row] for row in rows), key=lambda each: rank(each, direction))
        for rows in clusters(vectors, k=islands, seed=seed)
    ]
    if not ranked:
        return ((),) * islands
    shared = [
        each for own in ranked for each in own[: math.ceil(_share(mixing, own))]
    ]  # P: each top ceil(d |C_i|), section 3.3
    mixed = []
    for island in range(islands):
        own = ranked[island % len(ranked)]
        rng = np.random.default_rng([seed, island, 0, _STREAM])
        programs = _mixed(own, shared, mixing=mixing, elites=elites, rng=rng)
        mixed.append(tuple(sorted(programs, key=lambda each: rank(each, direction))))
    return tuple(mixed)


def _mixed(
    own: Sequence[Candidate],
    shared: Sequence[Candidate],
    *,
    mixing: float,
    elites: float,
    rng: np.random.Generator,
) -> list[Candidate]:
    """Return a cluster, given from the best to the worst, after copy-and-mix; section 3.3."""
    ids = {each.id for each in own}
    others = [each for each in shared if each.id not in ids]  # P \ C_i
    evictable = len(own) - math.ceil(_share(elites, own))  # all but the top ceil(rho n_i)
    exchanged = min(math.floor(_share(mixing, own)), len(others), evictable)  # r_i = floor(d n_i)
    drawn = rng.choice(len(others), size=exchanged, replace=False)
    return [*own[: len(own) - exchanged], *(others[index] for index in drawn)]


def _share(ratio: float, own: Sequence[Candidate]) -> Fraction:
    """Return the ratio of a cluster's size, as the decimal that the ratio is written as."""
    return Fraction(repr(float(ratio))) * len(own)
