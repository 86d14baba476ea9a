"""Novelty: whether a program is a near-copy of one that its island has.

ShinkaEvolve's rule (arXiv:2509.19349, "code novelty rejection-sampling"), without the language
model that it asks in the second place: a new program is rejected when its largest cosine similarity
with the programs of its island is over a threshold, 0.99 in its code. The threshold belongs to an
embedder: mean hidden states (``search.novelty_by=model``) lie closer together than n-grams of
syntax, or vectors that were trained to be compared (``engine.inference.embedding`` has figures).

A vector depends on its text but for rounding, and rounding may depend on what else the model
computed, so a cosine at the threshold may fall to either side. A run that goes on records what was
rejected, and does not decide it again.

Does not cover how often a parent is tried again, or programs that are the same but for layout:
``engine.search.population``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.core import Candidate, Pending
from engine.embedding import Embedder
from kernels.cosine import cosines


class Novelty:
    """The rule, for programs of any island."""

    def __init__(self, *, embedder: Embedder, threshold: float) -> None:
        """Set the rule up.

        Args:
            embedder: makes the vectors; one that keeps them, or they are made again each time.
            threshold: the largest cosine that is not rejected, above -1; from 1 on none is.

        Raises:
            ValueError: the threshold is not above -1.
        """
        if not threshold > -1:
            raise ValueError(f"expected a threshold above -1, but it is {threshold}")
        self._embedder = embedder
        self._threshold = threshold

    def near_copy(
        self, program: str, island: Sequence[Candidate | Pending]
    ) -> Candidate | Pending | None:
        """Return what a new program is to be rejected for; None if it is new enough.

        Args:
            program: the new one's text.
            island: what it is compared with; of those that it is equally like the first counts.
        """
        if not island:
            return None
        vectors = self._embedder.embed([program, *(each.program for each in island)])
        (found,) = cosines(vectors[:1], vectors[1:])
        nearest = int(np.argmax(found))
        return island[nearest] if float(found[nearest]) > self._threshold else None
