"""Exact rationals to the float64 on the safe side, for scores that have to be bounds.

Does not cover rounding inside compiled kernels.
"""

from __future__ import annotations

import math
from fractions import Fraction


def round_up(value: Fraction) -> float:
    """Return the smallest float64 that is at least ``value``; ``inf`` beyond the largest."""
    return 0.0 - round_down(-value)  # 0, where a bare minus makes it -0


def round_down(value: Fraction) -> float:
    """Return the largest float64 that is at most ``value``; ``-inf`` below the smallest."""
    try:
        nearest = float(value)  # correctly rounded, so at most one step away
    except OverflowError:
        return math.nextafter(math.inf, 0.0) if value > 0 else -math.inf
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)
