"""Fixed: each operator in proportion to its weight, whatever became of its calls."""

from collections.abc import Mapping, Sequence

from engine.search.mixes import MIXES, Mix, MixSettings, drawn
from engine.section import section


@MIXES.register("fixed")
@section
class FixedSettings(MixSettings):
    """No parameters."""

    def make(self, *, weights: Mapping[str, float]) -> "FixedMix":
        """Return the mix of an island."""
        return FixedMix(weights)


class FixedMix(Mix):
    """Each operator in proportion to its weight."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        """``weights``: of the operators, all above 0."""
        self._weights = weights

    def choose(self, names: Sequence[str], *, key: int, begun: Sequence[str] = ()) -> str:
        """Return one of ``names`` by chance."""
        return drawn(names, self._weights, key=key)
