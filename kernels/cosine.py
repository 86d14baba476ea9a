"""Cosine similarity of a few vectors and many others, by brute force.

Vectors are float32 rows, as embeddings are kept; sums are float64, so no length, sum or product
overflows or loses what matters, whatever the rows hold. A vector of zeros has no direction: its
cosine with any vector is 0. Does not cover an index for more vectors than can be looked through:
a run has thousands.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from kernels.jit import jit

Vectors = NDArray[np.float32]


def cosines(queries: Vectors, others: Vectors) -> NDArray[np.float64]:
    """Return the cosines of each query and each other vector, shape (q, n), from -1 to 1.

    Equal vectors have exactly 1. Else the error is below (d + 8) 2^-53 for d dimensions: the
    products are exact, and each of the three sums has at most d / 4 + 4 roundings.

    Args:
        queries: shape (q, d), float32.
        others: shape (n, d), float32. Any of q, n and d may be 0.

    Raises:
        ValueError: the shapes or types are others, or a value is not finite.
    """
    for name, vectors in (("queries", queries), ("others", others)):
        if vectors.ndim != 2 or vectors.dtype != np.float32:
            raise ValueError(
                f"Expected {name} to be float32 of two dimensions, but they are {vectors.dtype} of "
                f"shape {vectors.shape}"
            )
    if queries.shape[1] != others.shape[1]:
        raise ValueError(
            f"Expected vectors of one length, but they have {queries.shape[1]} and "
            f"{others.shape[1]} dimensions"
        )
    if not (np.isfinite(queries).all() and np.isfinite(others).all()):
        raise ValueError("Expected finite vectors, but one holds NaN or an infinity")
    return _cosines(np.ascontiguousarray(queries), np.ascontiguousarray(others))


@jit
def _cosines(queries: Vectors, others: Vectors) -> NDArray[np.float64]:
    """Return what `cosines` does, for C-contiguous rows that were checked."""
    result = np.zeros((queries.shape[0], others.shape[0]), np.float64)
    squares = np.zeros(queries.shape[0], np.float64)
    for q in range(queries.shape[0]):
        squares[q] = _dot(queries[q], queries[q])
    for n in range(others.shape[0]):
        square = _dot(others[n], others[n])
        if square == 0.0:
            continue
        for q in range(queries.shape[0]):
            if squares[q] > 0.0:
                # The root of a product: for equal vectors the rounded root of a rounded square
                # is the number itself, so that the quotient is 1.
                cosine = _dot(queries[q], others[n]) / math.sqrt(squares[q] * square)
                result[q, n] = min(1.0, max(-1.0, cosine))
    return result


@jit
def _dot(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """Return the dot product; four sums side by side, so that no addition waits for the last."""
    s0 = s1 = s2 = s3 = 0.0
    whole = a.size - a.size % 4
    for i in range(0, whole, 4):
        s0 += np.float64(a[i]) * np.float64(b[i])
        s1 += np.float64(a[i + 1]) * np.float64(b[i + 1])
        s2 += np.float64(a[i + 2]) * np.float64(b[i + 2])
        s3 += np.float64(a[i + 3]) * np.float64(b[i + 3])
    for i in range(whole, a.size):
        s0 += np.float64(a[i]) * np.float64(b[i])
    return (s0 + s1) + (s2 + s3)
