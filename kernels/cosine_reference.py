"""A plain NumPy version of ``kernels.cosine``, which the tests hold that one against."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernels.cosine import Vectors


def cosines(queries: Vectors, others: Vectors) -> NDArray[np.float64]:
    """Return the cosines of each query and each other vector; see `kernels.cosine.cosines`."""
    products: NDArray[np.float64] = _directions(queries) @ _directions(others).T
    clipped: NDArray[np.float64] = np.clip(products, -1.0, 1.0)
    return clipped


def _directions(vectors: Vectors) -> NDArray[np.float64]:
    """Return the vectors at length 1, those of zeros as they are."""
    exact = vectors.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    scaled: NDArray[np.float64] = np.zeros_like(exact)
    np.divide(exact, lengths, out=scaled, where=lengths > 0)
    return scaled
