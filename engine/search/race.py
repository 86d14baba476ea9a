"""A race: a weighted choice that hardly changes when a contestant is added.

Contestant i arrives after the time E_i / w_i, E_i ~ Exp(1) independent, w_i its weight; the first
one wins. By the memorylessness of the exponential distribution that is i with probability
w_i / (w_1 + ... + w_n), as if it had been drawn from the weights. In logarithms it is Gumbel-max:
the largest ln w_i + G_i, G_i = -ln E_i.

Here E_i is no carried-on randomness but a hash of the race's key and the contestant's id, so two
races with the same key have common random numbers: one that is held again with a few more
contestants, or slightly other weights, has the same winner unless a new one beats it. For weights
that give the distributions P and Q the winners agree with probability at least (1 - d) / (1 + d), d
the total variation distance, and nothing that sees only one of them can promise more (Daliri,
Musco and Suresh, "Coupling without communication and drafter-invariant speculative decoding",
2024, which has both statements). For one new contestant with the share q of the weights it is
1 - q: the new one won.

Covers: the choice. Does not cover whose weight is what: ``engine.search.parents``.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_KEPT = 1 << 16  # hashes of the ids asked about last


def winner(ids: Sequence[str], log_weights: NDArray[np.float64], *, key: int) -> int:
    """Return the place in ``ids`` of the one that wins.

    Args:
        ids: of the contestants, at least one; equal ids have equal times.
        log_weights: natural logarithms of their weights, not all -inf, shape (len(ids),).
        key: of the race, from 0 to 2^64 - 1.
    """
    return int(np.argmax(log_weights - np.log(_exponentials(ids, key))))


def uniforms(names: Sequence[str], *, key: int) -> NDArray[np.float64]:
    """Return a number inside (0, 1) for each name, shape (len(names),).

    It depends on the name and the key alone, so a draw that is made from it by an inverse
    distribution function has common random numbers too.
    """
    hashes = np.fromiter(map(_hash, names), dtype=np.uint64, count=len(names))
    return inside_unit(_mixed(_mixed(hashes ^ np.uint64(key)) + np.uint64(key)))


def inside_unit(bits: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return a number inside (0, 1) for each of ``bits``, no less for larger ones; same shape."""
    numbers = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    # 2^53 - 1/2 is no float64: the sum of the topmost bits is rounded to 2^53.
    below_1: NDArray[np.float64] = np.minimum(numbers, 1 - 2.0**-53)
    return below_1


def _exponentials(ids: Sequence[str], key: int) -> NDArray[np.float64]:
    """Return E of each contestant, above 0, shape (len(ids),)."""
    times: NDArray[np.float64] = -np.log(uniforms(ids, key=key))
    return times


@functools.lru_cache(maxsize=_KEPT)
def _hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return each number with every bit of it spread over all 64; shape as ``bits``.

    The finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
    generators", OOPSLA 2014).
    """
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
