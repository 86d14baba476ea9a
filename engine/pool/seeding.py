"""A run's beginning from a pool: read, evaluate, cluster, and say who starts where.

TurboEvolve, section 3.3: the pool's programs are evaluated as all others are, embedded, clustered
into as many clusters as there are islands, and mixed a little. Every program that was evaluated is
recorded with its verdict, also one that failed, or that no island took.

Each island begins from one cluster of the pool, a mode of it;
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
``pool.assignment=random`` deals the programs out in place of clustering them, which is what the
paper's initialization study (section 4.3) compares clusters with.

Does not cover how an island takes its programs in (``engine.search``), or how vectors are made
(``engine.embedding``).
"""

import logging
import math
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from engine.core import Candidate, Direction, Evaluation, Feature, Problem, Program
from engine.embedding import Vectors, embed
from engine.evaluation import Evaluators
from engine.pool.reading import PoolReading
from engine.search.features import cell_of
from engine.search.roster import rank
from engine.settings import RunSettings
from engine.store import Event, Seed, Verdict
from engine.syntax import read

_log = logging.getLogger("brood")

# Keep the draws apart from others that derive from the same seed.
_MIXING_STREAM, _CLUSTERS_STREAM, _DEALING_STREAM = 0x4D, 0x4B, 0x44
_RESTARTS = 8  # one start in a bad place is likely, eight are not
_ROUNDS = 30  # pools of hundreds settle in fewer


def seeds(
    settings: RunSettings,
    reading: PoolReading,
    *,
    problem: Problem,
    evaluators: Evaluators,
    fits: Callable[[str], bool],
    features: Sequence[Feature] | None,
) -> list[Event]:
    """Return the events that record a pool's programs; none of an empty pool.

    What is left out is logged with the reason.

    Args:
        settings: the run's.
        reading: what the pool's sources hold.
        problem: that the programs are for.
        evaluators: nobody else uses them meanwhile.
        fits: whether a prompt has room for a program.
        features: of the islands' archives; None where there are none.
    """
    if not (reading.programs or reading.unusable):
        return []
    left_out, pool = dict(reading.unusable), dict(reading.programs)
    for name, program in reading.programs.items():
        if reason := _refusal(program, problem, fits):
            left_out[name] = reason
            del pool[name]
    for name, program in pool.items():
        evaluators.submit(candidate_id=name, program=program.text)
    evaluations: dict[str, Evaluation] = {}
    while evaluators.in_flight:
        evaluations.update(evaluators.completed(timeout=None))
    valid = []
    for name, program in pool.items():
        found = evaluations[name]
        if found.score is None:
            left_out[name] = " ".join(f"{found.failure}: {found.message}".split())
        else:
            valid.append(Candidate(id=name, program=program.text, score=found.score))
    for name, reason in left_out.items():
        _log.warning("pool: %s is left out: %s", name, reason)
    _log.info("pool: %d programs, %d with a score", len(pool), len(valid))
    allocation = allocate(
        valid,
        embed([each.program for each in valid]),
        islands=settings.islands.count,
        assignment=settings.pool.assignment,
        mixing=settings.pool.mixing,
        elites=settings.pool.elites,
        direction=problem.direction,
        seed=settings.seed,
    )
    taken = [{each.id for each in own} for own in allocation]
    events: list[Event] = []
    for number, (name, program) in enumerate(pool.items()):
        islands = tuple(island for island, own in enumerate(taken) if name in own)
        seed = Seed(number=number, source=name, program=program.text, islands=islands)
        cell = cell_of(program, evaluations[name], features=features)
        verdict = Verdict(candidate=seed.candidate, evaluation=evaluations[name], cell=cell)
        events += [seed, verdict]
    return events


def _refusal(program: Program, problem: Problem, fits: Callable[[str], bool]) -> str | None:
    """Return why a run refuses a program without an evaluation; None if it does not."""
    initial = read(problem.initial_program)
    if initial is not None and program.key == initial.key:
        return "the same as the initial program"
    if program.undefined:
        return f"reads a name that nothing defines: {program.undefined[0]}"
    return None if fits(program.text) else "too long for a prompt; raise model.max_model_len"


def allocate(
    candidates: Sequence[Candidate],
    vectors: Vectors,
    *,
    islands: int,
    assignment: str,
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
        assignment: ``kmeans`` for clusters of the vectors, ``random`` for groups of equal size,
            whatever is in them.
        mixing: d, from 0 (clusters stay as they are) to 1.
        elites: rho, from 0 to 1 (clusters stay as they are).
        direction: of the scores.
        seed: the run's; the same arguments give the same programs.
    """
    best_first = partial(rank, direction=direction)
    if assignment == "kmeans":
        groups = clusters(vectors, k=islands, seed=seed)
    else:
        groups = dealt(len(candidates), k=islands, seed=seed)
    ranked = [sorted((candidates[row] for row in rows), key=best_first) for rows in groups]
    if not ranked:
        return ((),) * islands
    # P: each top ceil(d |C_i|), section 3.3
    shared = [each for own in ranked for each in own[: math.ceil(_share(mixing, own))]]
    mixed = []
    for island in range(islands):
        own = ranked[island % len(ranked)]
        others = [each for each in shared if each not in own]  # P \ C_i
        evictable = len(own) - math.ceil(_share(elites, own))  # all but the top ceil(rho n_i)
        # r_i = floor(d n_i)
        exchanged = min(math.floor(_share(mixing, own)), len(others), evictable)
        rng = np.random.default_rng([seed, island, 0, _MIXING_STREAM])
        drawn = rng.choice(len(others), size=exchanged, replace=False)
        programs = [*own[: len(own) - exchanged], *(others[index] for index in drawn)]
        mixed.append(tuple(sorted(programs, key=best_first)))
    return tuple(mixed)


def _share(ratio: float, own: Sequence[Candidate]) -> Fraction:
    """Return the ratio of a cluster's size, as the decimal that the ratio is written as."""
    return Fraction(repr(float(ratio))) * len(own)


def dealt(count: int, *, k: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """Return rows dealt out at random to at most ``k`` groups, none empty, their sizes within one.

    Args:
        count: of rows.
        k: how many groups, 1 or more.
        seed: the same one gives the same groups.
    """
    rows = np.random.default_rng([seed, 0, 0, _DEALING_STREAM]).permutation(count)
    groups = np.array_split(rows, min(k, count)) if count else []
    return tuple(tuple(sorted(group.tolist())) for group in groups)


def clusters(vectors: Vectors, *, k: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """Return which rows belong together: the best of several runs of k-means.

    The best run has the smallest sum of squared distances from the clusters' means. The starts are
    k-means++ (Arthur and Vassilvitskii, SODA 2007). A cluster that k-means leaves empty gets one
    row of a cluster that has several: the one farthest from its mean. The same vectors and seed
    give the same clusters.

    Args:
        vectors: finite, shape (n, d).
        k: how many clusters, 1 or more; as many as there are different vectors, if that is less.
        seed: of the starts.

    Returns:
        The rows of each cluster in ascending order, the clusters in the order of their first rows.
        Each of the n rows is in one cluster, and no cluster is empty.
    """
    if not len(vectors):
        return ()
    points = vectors.astype(np.float64)
    k = min(k, len(np.unique(points, axis=0)))
    if k == 1:
        return (tuple(range(len(points))),)
    rng = np.random.default_rng([seed, 0, 0, _CLUSTERS_STREAM])
    starts = [_filled(_labels(points, k, rng), points, k) for _ in range(_RESTARTS)]
    best = min(starts, key=lambda labels: _squares(labels, points, k).sum())
    found = [tuple(np.flatnonzero(best == label).tolist()) for label in range(k)]
    return tuple(sorted(found))


def _labels(points: NDArray[np.float64], k: int, rng: np.random.Generator) -> NDArray[np.intp]:
    from scipy.cluster.vq import kmeans2  # which few runs need, and is long to import

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an empty cluster, which `_filled` mends
        _, labels = kmeans2(points, k, iter=_ROUNDS, minit="++", rng=rng)
    return np.asarray(labels, dtype=np.intp)


def _filled(labels: NDArray[np.intp], points: NDArray[np.float64], k: int) -> NDArray[np.intp]:
    """Return the labels with no cluster empty; there are at least ``k`` different points."""
    labels = labels.copy()
    for label in range(k):
        if not (labels == label).any():
            # A row by itself lies at its mean. Some other one does not, as there are more
            # different points than clusters that hold any.
            labels[np.argmax(_squares(labels, points, k))] = label
    return labels


def _squares(labels: NDArray[np.intp], points: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Return the squared distance of each row from the mean of its cluster, shape (n,)."""
    result = np.zeros(len(points))
    for label in range(k):
        rows = labels == label
        if rows.sum() > 1:
            result[rows] = ((points[rows] - points[rows].mean(axis=0)) ** 2).sum(axis=1)
    return result
