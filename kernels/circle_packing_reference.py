"""Plain versions of ``kernels.circle_packing``, which the tests hold those against.

`excess` is written with whole arrays. `exact_packing` computes with Python's integers what the
compiled one does with its own. `valid` decides a packing from the constraints as they are stated,
with rational numbers and no root, so it shares nothing with the exact verification.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from kernels.circle_packing import GRID_BITS, Floats, Packing


def excess(centers: Floats, radii: Floats) -> tuple[float, float]:
    """Return the largest wall and overlap violation; see `kernels.circle_packing.excess`."""
    wall = np.max(radii[:, None] - np.hstack([centers, 1.0 - centers]))
    i, j = np.triu_indices(radii.size, k=1)
    distances = np.linalg.norm(centers[i] - centers[j], axis=1)
    overlap = np.max(radii[i] + radii[j] - distances, initial=-np.inf)
    return float(wall), float(overlap)


def valid(centers: Sequence[Sequence[Fraction]], radii: Sequence[Fraction]) -> bool:
    """Return whether all circles lie in the unit square and no two overlap, exactly."""
    inside = all(
        radius >= 0 and radius <= coordinate <= 1 - radius
        for center, radius in zip(centers, radii, strict=True)
        for coordinate in center
    )
    return inside and all(
        (radii[i] + radii[j]) ** 2
        <= (centers[i][0] - centers[j][0]) ** 2 + (centers[i][1] - centers[j][1]) ** 2
        for i, j in combinations(range(len(radii)), 2)
    )


def exact_packing(centers: Floats, radii: Floats) -> Packing:
    """Reduce all radii; see `kernels.circle_packing.exact_packing`."""
    if centers.shape != (radii.size, 2) or radii.ndim != 1:
        raise ValueError(
            f"Expected centers of shape (n, 2) and radii of shape (n,), but they had shapes "
            f"{centers.shape} and {radii.shape}"
        )
    _check(centers, radii)
    *coordinates, unit = _integers([*centers.ravel().tolist(), *radii.tolist()])
    n = radii.size
    x, y, r = coordinates[0 : 2 * n : 2], coordinates[1 : 2 * n : 2], coordinates[2 * n :]
    shrink = 0
    for i in range(n):
        shrink = max(shrink, r[i] - min(x[i], y[i], unit - x[i], unit - y[i]))
        for j in range(i):
            distance = math.isqrt((x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2)
            half = -((distance - r[i] - r[j]) // 2)  # rounded up
            shrink = max(shrink, half, max(r[i], r[j]) - distance)
    total = sum(max(0, radius - shrink) for radius in r)
    return Packing(shrink=Fraction(shrink, unit), radii_sum=Fraction(total, unit))


def _check(centers: Floats, radii: Floats) -> None:
    if not (np.isfinite(centers).all() and np.isfinite(radii).all()):
        raise ValueError("centers or radii hold a value that is not finite")
    for i, ((x, y), radius) in enumerate(zip(centers.tolist(), radii.tolist(), strict=True)):
        if radius < 0:
            raise ValueError(f"circle {i} has a negative radius, {radius:.6g}")
        if not (0 <= x <= 1 and 0 <= y <= 1):
            raise ValueError(f"circle {i} has its center ({x:.6g}, {y:.6g}) outside the square")


def _integers(values: list[float]) -> list[int]:
    """Return ``values`` and, last, 1 in units of the finest of their binary places, or 2^-96."""
    ratios = [value.as_integer_ratio() for value in values]
    unit = max(1 << GRID_BITS, *(denominator for _, denominator in ratios))
    return [numerator * (unit // denominator) for numerator, denominator in ratios] + [unit]
