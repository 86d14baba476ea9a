"""Parents: programs that are drawn as the call's parent was, none twice.

CodeEvolve (arXiv 2510.14150) calls it inspiration-based crossover: ``num_inspirations`` programs
are drawn by the rule that drew the parent.
"""

from collections.abc import Sequence

import numpy as np

from engine.core import Candidate, Direction
from engine.search.inspirations import INSPIRATIONS, DrawParent, InspirationSettings
from engine.search.roster import Roster
from engine.section import Count, section


@INSPIRATIONS.register("parents")
@section
class ParentsSettings(InspirationSettings):
    """How many programs are shown.

    Attributes:
        count: how many; there may be fewer programs.
    """

    count: Count = 2

    def make(self, *, direction: Direction) -> "ParentInspirations":
        """Return the policy."""
        return ParentInspirations(self)


class ParentInspirations:
    """As parents are drawn."""

    def __init__(self, settings: ParentsSettings) -> None:
        self._count = settings.count

    def choose(
        self, candidates: Roster, *, but: Sequence[str | None], key: int, draw: DrawParent
    ) -> list[Candidate]:
        """Return the programs in the order in which they were drawn; see `Inspirations.choose`."""
        left, found = candidates, list[Candidate]()
        for name in but:
            left = left if name is None else left.without(name)
        for each in np.random.SeedSequence(key).generate_state(self._count, np.uint64):
            if not left:
                break
            found.append(draw(left, int(each)))
            left = left.without(found[-1].id)
        return found
