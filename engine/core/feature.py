"""A dimension of an archive.

Does not cover what is measured of a program: ``engine.search.features``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Feature:
    """A dimension in which programs differ, cut into bins of equal width; see ``search.features``.

    Attributes:
        name: one of ``engine.search.features.MEASURES``, or of a metric of the problem.
        low: where the first bin begins; smaller values count as in it.
        high: where the last bin ends; larger values count as in it.
        bins: how many, 1 or more.

    Raises:
        ValueError: the range is empty or not finite, or there is no bin.
    """

    name: str
    low: float
    high: float
    bins: int

    def __post_init__(self) -> None:
        if not 0 < self.high - self.low < math.inf:
            raise ValueError(
                f"feature {self.name!r} ranges from {self.low} to {self.high}; the first must be "
                "the smaller, and their distance finite"
            )
        if self.bins < 1:
            raise ValueError(f"feature {self.name!r} has {self.bins} bins; it needs 1 or more")

    def bin(self, value: float) -> int:
        """Return the number of the bin that holds a value, from 0.

        A bin holds its lower bound and not its upper one, but for the last one.

        Raises:
            ValueError: the value is not a number.
        """
        if math.isnan(value):
            raise ValueError(f"feature {self.name!r} is not a number")
        value = min(max(value, self.low), self.high)
        share = (value - self.low) / (self.high - self.low)
        return min(int(share * self.bins), self.bins - 1)
