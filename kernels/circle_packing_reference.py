"""Plain versions of ``kernels.circle_packing``, which the tests hold those against.

`excess` is written with whole arrays. `valid` decides a packing from the constraints as they are
stated, with rational numbers and no root, so it shares nothing with the exact verification.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from kernels.circle_packing import Floats


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
