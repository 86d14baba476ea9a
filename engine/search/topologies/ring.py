"""Ring: each island sends its migrants to the next one, the last to the first."""

from collections.abc import Sequence

from engine.search.topologies import TOPOLOGIES, TopologySettings
from engine.section import section


@TOPOLOGIES.register("ring")
@section
class RingSettings(TopologySettings):
    """No parameters."""

    def make(self, *, islands: int) -> "Ring":
        """Return the ring of so many islands."""
        return Ring(islands)


class Ring:
    """The stepping-stone model in one dimension."""

    def __init__(self, islands: int) -> None:
        """``islands``: how many there are."""
        self._islands = islands

    def targets(self, island: int) -> Sequence[int]:
        """Return the next island, if there is another."""
        return () if self._islands == 1 else ((island + 1) % self._islands,)
