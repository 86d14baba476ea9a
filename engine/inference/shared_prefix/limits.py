"""From where on rows of a step are a group that reads together."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """The least that pays for a second pass; to be tuned on a GPU.

    Attributes:
        tokens: the fewest that a group shares. Cascade attention on FlashAttention 3 was seen to
            lose at 512 (vllm#44397).
        rows: the fewest that a group has.
    """

    tokens: int = 2048
    rows: int = 8

    def blocks(self, block_size: int) -> int:
        """Return the fewest whole blocks that a group shares."""
        return -(-self.tokens // block_size)
