"""From where on a step is split, and from where on its rows are a group that reads together."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """The least that pays for a second pass, as ``bench.two_passes`` measured it on an H100.

    Attributes:
        tokens: the fewest that a group shares. In a step that is split anyway, 8 or 16 rows with
            1,024 tokens in common lose more by reading together than they save.
        rows: the fewest that a group has; fewer were not measured.
        step: the fewest rows of a step that is split. 16 gain from 8,192 shared tokens on, 32 from
            4,096; 8 lose there.
    """

    tokens: int = 2048
    rows: int = 8
    step: int = 16

    def blocks(self, block_size: int) -> int:
        """Return the fewest whole blocks that a group shares."""
        return -(-self.tokens // block_size)
