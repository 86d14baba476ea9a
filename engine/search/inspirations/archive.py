"""Archive: the best programs of an island, and others of its archive by chance.

A prompt shows the ``best`` programs of the island, and ``others`` that are drawn uniformly, without
replacement, from the rest of its archive, which holds its ``size`` best programs.

- OpenEvolve, whose protocol TurboEvolve keeps: its configuration's 3 top programs and 2 diverse
  ones, of an archive of 100.
- ShinkaEvolve (Lange, Imajuku and Cetin, 2025), section 3.1 and its code's configuration of the
  paper's circle packing: of 4 archive inspirations the best program, floor(0.3 * 4) = 1 elite and 2
  at random, and then the top 2 of the others; so the 4 best and 2 others, of an archive of 40.
- AdaEvolve: of 4 context programs some are unlike the parent and the others the best.
"""

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from engine.core import Candidate, Direction
from engine.search.inspirations import INSPIRATIONS, DrawParent, InspirationSettings
from engine.search.race import uniforms
from engine.search.roster import Roster, best_few, hashes_of
from engine.section import Count, Whole, section


@INSPIRATIONS.register("archive")
@section
class ArchiveSettings(InspirationSettings):
    """How many programs are shown.

    Attributes:
        size: of the island's best programs, which the archive holds.
        best: how many of the best are shown.
        others: how many of the others.
    """

    size: Count = 40
    best: Whole = Field(default=4, ge=0)
    others: Whole = Field(default=2, ge=0)

    def make(self, *, direction: Direction) -> "ArchiveInspirations":
        """Return the policy."""
        return ArchiveInspirations(self, direction=direction)


class ArchiveInspirations:
    """The best, and a few others by chance."""

    def __init__(self, settings: ArchiveSettings, *, direction: Direction) -> None:
        """``direction``: of the scores."""
        self._settings = settings
        self._direction = direction

    def choose(
        self, candidates: Roster, *, but: Sequence[str | None], key: int, draw: DrawParent
    ) -> list[Candidate]:
        """Return the best first; see `Inspirations.choose`."""
        held = best_few(candidates, self._settings.size, self._direction)
        free = [each for each in held if each.id not in but]
        best, rest = free[: self._settings.best], free[self._settings.best :]
        order = np.argsort(uniforms(hashes_of(rest), key=key))
        return best + [rest[place] for place in order[: self._settings.others]]
