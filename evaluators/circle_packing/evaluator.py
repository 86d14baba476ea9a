"""The ``circle_packing`` problem: 26 circles in the unit square, with the largest sum of radii.

Stricter than the public evaluators, which let circles overlap and leave the square by 1e-6:
``score`` is the sum of the radii after the exact verification of ``kernels.circle_packing``. The
sum that a program returns is never looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engine.core import ArraySpec, Case, Outputs, Rejected
from kernels.circle_packing import exact_packing, excess
from kernels.rounding import round_down, round_up

CIRCLES = 26
TARGET = 2.635
TOLERANCE = 1e-6


def cases() -> Sequence[Case]:
    """Return the one call ``run_packing()``."""
    outputs = {
        "centers": ArraySpec(shape=(CIRCLES, 2)),
        "radii": ArraySpec(shape=(CIRCLES,)),
        "sum": ArraySpec(shape=(), finite=False),  # part of the public interface, not used
    }
    return [Case(name="packing", args=(), outputs=outputs)]


def score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
    """Score the packing.

    Returns:
        ``score``: sum of the radii that are left when all are reduced by ``shrink``, the smallest
        amount that makes the packing valid. It is rounded down and ``shrink`` up, so both hold
        for a packing that exists. ``score_1e6``: sum of the radii as returned where no circle
        leaves the square or overlaps another by more than 1e-6, else 0; the public evaluators'
        score, in float64. ``target_ratio``: ``score`` / 2.635.

    Raises:
        Rejected: a radius is negative, or a centre lies outside the square.
    """
    (packing,) = outputs
    centers = np.ascontiguousarray(packing["centers"], dtype=np.float64)
    radii = np.ascontiguousarray(packing["radii"], dtype=np.float64)
    try:
        exact = exact_packing(centers, radii)
    except ValueError as error:
        raise Rejected(str(error)) from error
    tolerated = max(excess(centers, radii)) <= TOLERANCE
    radii_sum = round_down(exact.radii_sum)
    return {
        "score": radii_sum,
        "score_1e6": float(np.sum(radii)) if tolerated else 0.0,
        "target_ratio": radii_sum / TARGET,
        "shrink": round_up(exact.shrink),
    }
