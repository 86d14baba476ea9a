"""Fixed: ``search.k`` children in every call."""

from engine.search.widths import WIDTHS, WidthPolicy, WidthSettings
from engine.section import section


@WIDTHS.register("fixed")
@section
class FixedSettings(WidthSettings):
    """No parameters."""

    def make(self, *, k: int, seed: int, island: int) -> "FixedWidth":
        """Return the policy of an island."""
        return FixedWidth(k=k)


class FixedWidth(WidthPolicy):
    """The same K in every call."""

    def __init__(self, *, k: int) -> None:
        """Keep K, 1 or more."""
        self._k = k

    def k(self, *, iteration: int) -> int:
        """Return K."""
        return self._k
