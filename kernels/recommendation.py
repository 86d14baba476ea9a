"""Metrics of ``sequential_recommendation``: ranked lists of items against one next item each.

Lists are int64 arrays of shape (users, k), best item first; targets are int64 of shape (users,).
Items are the integers 0 to num_items - 1. A list has no scores in it, so there are no ties to
break; a target that is not in its list has rank 0 and earns nothing. As a user has exactly one
target, the ideal DCG is 1 and NDCG is the DCG itself.

NDCG@10, Hit Rate@10, MRR and the mean of the three as the score: PACEvolve++, section 4.1.2; the
same two at 50: its table 3. The paper names the metrics without writing them out; the formulas
here are the usual ones. Every metric is a mean of values in [0, 1]; against exact arithmetic its
error is below (users + 4) 2^-53. Does not cover the data and how they are split
(``evaluators/sequential_recommendation``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.jit import jit

Items = NDArray[np.int64]


class Metrics(NamedTuple):
    """The metrics of one set of lists: means over the users."""

    ndcg_10: float
    hit_rate_10: float
    mrr: float
    ndcg_50: float
    hit_rate_50: float


@jit
def first_fault(lists: Items, num_items: int) -> tuple[int, int]:
    """Return (user, place) of the first entry that is no item or repeats one of its list.

    Rows first, places from 0; (-1, -1) where every list holds different items in range.
    """
    seen_by = np.full(num_items, -1)
    for user in range(lists.shape[0]):
        for place in range(lists.shape[1]):
            item = lists[user, place]
            if item < 0 or item >= num_items or seen_by[item] == user:
                return user, place
            seen_by[item] = user
    return -1, -1


@jit
def ranks(lists: Items, targets: Items) -> Items:
    """Return the place of each target in its list, from 1; 0 where it is not in it.

    Shape (users,). Where an item is repeated, its first place counts.
    """
    found = np.zeros(targets.size, dtype=np.int64)
    for user in range(targets.size):
        for place in range(lists.shape[1]):
            if lists[user, place] == targets[user]:
                found[user] = place + 1
                break
    return found


@jit
def ndcg(found: Items, cutoff: int) -> float:
    """Return NDCG@cutoff = mean of 1 / log2(1 + rank) where 1 <= rank <= cutoff, else 0."""
    total = 0.0
    for rank in found:
        if 1 <= rank <= cutoff:
            total += 1.0 / np.log2(1.0 + rank)
    return total / found.size


@jit
def hit_rate(found: Items, cutoff: int) -> float:
    """Return HR@cutoff, the share of users with 1 <= rank <= cutoff."""
    hits = 0
    for rank in found:
        if 1 <= rank <= cutoff:
            hits += 1
    return hits / found.size


@jit
def mrr(found: Items) -> float:
    """Return the mean reciprocal rank, mean of 1 / rank, with 0 for rank 0.

    The lists end at k, so this is MRR@k: below the MRR of a full ranking by less than 1 / (k + 1).
    """
    total = 0.0
    for rank in found:
        if rank >= 1:
            total += 1.0 / rank
    return total / found.size


@jit
def measure(lists: Items, targets: Items) -> Metrics:
    """Return all metrics of ``lists``.

    Raises:
        ValueError: there is no user, or another number of lists than targets.
    """
    if lists.shape[0] != targets.size or targets.size == 0:
        raise ValueError("Expected as many lists as targets and at least one, but it was not so")
    found = ranks(lists, targets)
    return Metrics(
        ndcg(found, 10), hit_rate(found, 10), mrr(found), ndcg(found, 50), hit_rate(found, 50)
    )
