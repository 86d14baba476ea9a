"""A race: a weighted choice that hardly changes when a contestant is added.

Contestant i arrives after the time E_i / w_i, E_i ~ Exp(1) independent, w_i its weight; the first
one wins. By the memorylessness of the exponential distribution that is i with probability
w_i / (w_1 + ... + w_n), as if it had been drawn from the weights. In logarithms it is Gumbel-max:
the largest ln w_i + G_i, G_i = -ln E_i.

Here E_i is a hash of the race's key and the contestant's id. So two races with the same key have
common random numbers: a race that is held again with a few more contestants, or slightly other
weights, mostly has the same winner. Let the weights of two races give the distributions P and Q,
with the total variation distance d. Then the winners agree with probability at least
(1 - d) / (1 + d), and no method that sees only one of P and Q can promise more (Daliri, Musco and
Suresh, "Coupling without communication and drafter-invariant speculative decoding", 2024, which has
both statements). With one new contestant that has the share q of the weights, the winner stays with
probability 1 - q.

Covers: the choice. Does not cover whose weight is what: ``engine.search.parents``.
"""

import functools
import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_KEPT = 1 << 16  # hashes of the ids asked about last


def winner(
    hashes: NDArray[np.uint64], log_weights: NDArray[np.float64] | float, *, key: int
) -> int:
    """Return the place of the one that wins.

    Args:
        hashes: of the contestants' ids, at least one; equal ids have equal times.
        log_weights: natural logarithms of their weights, not all -inf, shape as ``hashes``; one
            number where the weights are equal.
        key: of the race, from 0 to 2^64 - 1.
    """
    exponentials = -np.log(uniforms(hashes, key=key))  # E of each contestant, above 0
    return int(np.argmax(log_weights - np.log(exponentials)))


def uniforms(hashes: NDArray[np.uint64], *, key: int) -> NDArray[np.float64]:
    """Return a number inside (0, 1) for each of some names, by their hashes; same shape.

    It depends on the name and the key alone, so a draw that is made from it by an inverse
    distribution function has common random numbers too.
    """
    return inside_unit(_mixed(_mixed(hashes ^ np.uint64(key)) + np.uint64(key)))


def inside_unit(bits: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return a number inside (0, 1) for each of ``bits``, no less for larger ones; same shape."""
    numbers = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    # 2^53 - 1/2 is no float64: the sum of the topmost bits is rounded to 2^53.
    below_1: NDArray[np.float64] = np.minimum(numbers, 1 - 2.0**-53)
    return below_1


def hashes_of(names: Sequence[str]) -> NDArray[np.uint64]:
    """Return a hash of each name, shape (len(names),)."""
    return np.fromiter(map(_hash, names), dtype=np.uint64, count=len(names))


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
