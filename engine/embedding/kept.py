"""Each program's vector, made once and kept.

Does not cover keeping vectors beyond the process: they follow from the programs, which the run's
log has.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.embedding.embedder import Embedder, Vectors


class KeptEmbeddings:
    """An embedder that asks another one, once for each text; not for two threads at once."""

    def __init__(self, embedder: Embedder, *, most: int) -> None:
        """Start with nothing kept.

        Args:
            embedder: makes the vectors.
            most: how many are kept; those asked for last stay.

        Raises:
            ValueError: ``most`` is below 1.
        """
        if most < 1:
            raise ValueError(f"expected to keep at least 1 embedding, but most is {most}")
        self._embedder = embedder
        self._most = most
        self._kept: OrderedDict[str, NDArray[np.float32]] = OrderedDict()

    @property
    def dimensions(self) -> int:
        """Length of the vectors."""
        return self._embedder.dimensions

    def embed(self, programs: Sequence[str]) -> Vectors:
        """Return a vector for each program, shape (len(programs), dimensions).

        All that are not kept are made in one go.
        """
        missing = [text for text in dict.fromkeys(programs) if text not in self._kept]
        made = dict(zip(missing, self._embedder.embed(missing) if missing else (), strict=True))
        result = np.zeros((len(programs), self.dimensions), np.float32)
        for row, text in enumerate(programs):
            result[row] = made[text] if text in made else self._kept[text]
        for text in programs:
            if text in made:  # a copy, or one row would keep all rows of its batch
                self._kept[text] = made[text].copy()
            self._kept.move_to_end(text)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return result
