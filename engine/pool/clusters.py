"""k-means over programs' vectors, with no cluster empty.

Does not cover how vectors are made (``engine.embedding``).
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2

from engine.embedding import Vectors

_RESTARTS = 8  # one start in a bad place is likely, eight are not
_ROUNDS = 30  # pools of hundreds settle in fewer
_STREAM = 0x4B  # keeps the draws apart from others that derive from the same seed


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

    Raises:
        ValueError: ``k`` is below 1, or a value is not finite.
    """
    if k < 1:
        raise ValueError(f"expected at least 1 cluster, but k is {k}")
    if not np.isfinite(vectors).all():
        raise ValueError("Expected finite vectors, but one holds NaN or an infinity")
    if not len(vectors):
        return ()
    points = vectors.astype(np.float64)
    k = min(k, len(np.unique(points, axis=0)))
    if k == 1:
        return (tuple(range(len(points))),)
    rng = np.random.default_rng([seed, 0, 0, _STREAM])
    best: NDArray[np.intp] | None = None
    least = np.inf
    for _ in range(_RESTARTS):
        labels = _filled(_labels(points, k, rng), points, k)
        spread = float(_squares(labels, points, k).sum())
        if best is None or spread < least:
            best, least = labels, spread
    assert best is not None  # there is at least one start
    found = [tuple(np.flatnonzero(best == label).tolist()) for label in range(k)]
    return tuple(sorted(found))


def _labels(points: NDArray[np.float64], k: int, rng: np.random.Generator) -> NDArray[np.intp]:
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
