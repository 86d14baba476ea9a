"""Plain NumPy versions of ``kernels.recommendation``, which the tests hold the compiled ones to.

Same names, arguments, shapes and rules; see there for the formulas. Not for use in scoring.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernels.recommendation import Items, Metrics


def first_fault(lists: Items, num_items: int) -> tuple[int, int]:
    """Return where the lists are not allowed; see `kernels.recommendation.first_fault`."""
    k = lists.shape[1]
    earlier = np.tril(np.ones((k, k), dtype=bool), -1)
    repeated = ((lists[:, :, None] == lists[:, None, :]) & earlier).any(axis=2)
    faults = np.argwhere((lists < 0) | (lists >= num_items) | repeated)
    return (int(faults[0, 0]), int(faults[0, 1])) if faults.size else (-1, -1)


def ranks(lists: Items, targets: Items) -> Items:
    """Return the places of the targets; see `kernels.recommendation.ranks`."""
    # A column of hits behind the list makes argmax give k where the target is not in it.
    hits = np.column_stack([lists == targets[:, None], np.ones(targets.size, dtype=bool)])
    place = np.argmax(hits, axis=1)
    return np.where(place < lists.shape[1], place + 1, 0)


def _hits(found: Items, cutoff: int) -> NDArray[np.bool_]:
    return np.asarray((found >= 1) & (found <= cutoff))


def ndcg(found: Items, cutoff: int) -> float:
    """Return NDCG@cutoff; see `kernels.recommendation.ndcg`."""
    return float(np.mean(_hits(found, cutoff) / np.log2(1.0 + np.maximum(found, 1))))


def hit_rate(found: Items, cutoff: int) -> float:
    """Return HR@cutoff; see `kernels.recommendation.hit_rate`."""
    return float(np.mean(_hits(found, cutoff)))


def mrr(found: Items) -> float:
    """Return the mean reciprocal rank; see `kernels.recommendation.mrr`."""
    return float(np.mean((found >= 1) / np.maximum(found, 1)))


def measure(lists: Items, targets: Items) -> Metrics:
    """Return all metrics; see `kernels.recommendation.measure`."""
    found = ranks(lists, targets)
    return Metrics(
        ndcg(found, 10), hit_rate(found, 10), mrr(found), ndcg(found, 50), hit_rate(found, 50)
    )
