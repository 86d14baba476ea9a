"""What makes a vector of a program's text.

Covers: the interface, and the form of the vectors. Does not cover what is done with them:
``engine.search.novelty`` (near-copies) and ``engine.pool`` (clusters).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Makes vectors of programs, so that like programs have like directions.

    How like two programs must be to have a cosine of 0.99 is each embedder's own, so a threshold
    for one means little for another.
    """

    @property
    def dimensions(self) -> int:
        """Length of the vectors."""

    def embed(self, programs: Sequence[str]) -> Vectors:
        """Return a vector for each program, float32, shape (len(programs), dimensions).

        A program's vector depends on its text alone, but for rounding. Its length is 1, or 0 for
        a text in which there is nothing to embed.
        """


def directions(vectors: NDArray[np.floating]) -> Vectors:
    """Return the rows scaled to length 1, those of zeros as they are; shape (n, d), finite."""
    exact = vectors.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    scaled: NDArray[np.float64] = np.zeros_like(exact)
    np.divide(exact, lengths, out=scaled, where=lengths > 0)
    return scaled.astype(np.float32)
