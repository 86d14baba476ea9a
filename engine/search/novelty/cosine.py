"""Cosine: a program is a near-copy of the one whose vector is nearest, if that is near enough.

ShinkaEvolve's rule (arXiv:2509.19349, "code novelty rejection-sampling"), without the language
model that it asks in the second place: a new program is rejected when its largest cosine similarity
with the programs of its island is over a threshold (0.95 in the paper, 0.99 in its code). The
threshold belongs to a kind of vectors: with n-grams of syntax (``engine.embedding``) a single edit
of a program of 60 lines lies 0.991 to 0.999 from it, so theirs would refuse small edits as such.
"""

from collections.abc import Callable, Collection, Sequence

import numpy as np
from pydantic import Field

from engine.core import Candidate, Pending
from engine.embedding import Vectors, embed
from engine.search.novelty import NOVELTY, NoveltySettings
from engine.section import Number, section
from kernels.cosine import cosines


@NOVELTY.register("cosine")
@section
class CosineSettings(NoveltySettings):
    """How near is too near.

    Attributes:
        threshold: the largest cosine that is not rejected, above 0 and below 1.
    """

    threshold: Number = Field(default=0.999, gt=0, lt=1)

    def make(self) -> "Cosine":
        """Return the rule."""
        return Cosine(threshold=self.threshold)


class Cosine:
    """The rule, for programs of any island.

    A vector is kept as long as the rule, 4 KiB with those of ``engine.embedding``: each child is
    compared with all programs of its island, and to make the vectors anew takes far longer.
    """

    def __init__(
        self, *, threshold: float, embed: Callable[[Sequence[str]], Vectors] = embed
    ) -> None:
        """Set the rule up.

        Args:
            threshold: the largest cosine that is not rejected.
            embed: makes the programs' vectors, shape (programs, d).
        """
        self._embed = embed
        self._threshold = threshold
        self._vectors: Vectors | None = None  # with room for later ones
        self._rows: dict[str, int] = {}  # of the programs' vectors, by their ids

    def near_copy(
        self, program: str, island: Sequence[Candidate | Pending]
    ) -> Candidate | Pending | None:
        """Return the program that a new one is nearest to, of several the first, if too near."""
        if not island:
            return None
        new = {each.id: each.program for each in island if each.id not in self._rows}
        vectors = self._embed([program, *new.values()])
        kept = self._keep(new, vectors[1:])
        (found,) = cosines(vectors[:1], kept[[self._rows[each.id] for each in island]])
        nearest = int(np.argmax(found))
        return island[nearest] if float(found[nearest]) > self._threshold else None

    def _keep(self, ids: Collection[str], vectors: Vectors) -> Vectors:
        """Keep the vectors of programs; return all that are kept."""
        size, needed = len(self._rows), len(self._rows) + len(ids)
        kept = vectors[:0] if self._vectors is None else self._vectors
        if needed > len(kept):
            room = np.empty((max(needed, 2 * size), vectors.shape[1]), np.float32)
            room[:size] = kept[:size]
            kept = room
        kept[size:needed] = vectors
        self._rows |= zip(ids, range(size, needed), strict=True)
        self._vectors = kept
        return kept
