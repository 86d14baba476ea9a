"""Verification of circles packed into the unit square: exact, and with the public tolerance.

A packing is ``centers`` of shape (n, 2) and ``radii`` of shape (n,), C-contiguous float64, in
units of the square's side. It is valid where every circle lies in [0, 1] x [0, 1] and no two
overlap; touching is allowed:

    r_i <= w_i = min(x_i, y_i, 1 - x_i, 1 - y_i),        r_i + r_j <= d_ij        (1)

with d_ij the distance of the centres. `excess` measures in float64 by how much (1) fails, and is
compiled. `exact_packing` works on the integers behind the floats and rounds nothing
(``native/packing.cpp``). Both run without the GIL. Does not cover finding packings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from kernels import _native
from kernels.jit import jit

Floats = NDArray[np.float64]

GRID_BITS = 96
"""The shrink is a multiple of 2^-GRID_BITS, or of a finer power of two where a float needs it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Packing:
    """The valid packing that is left of a given one.

    Attributes:
        shrink: what every radius was reduced by; 0 where the given packing was valid.
        radii_sum: sum of the reduced radii. Both are exact.
    """

    shrink: Fraction
    radii_sum: Fraction


@jit
def excess(centers: Floats, radii: Floats) -> tuple[float, float]:
    """Return the largest ``r_i - w_i`` and the largest ``r_i + r_j - d_ij``, i != j, of (1).

    Positive values are violations. Coordinates and radii of size at most 1 give an error below
    1e-15 each, 2^-53 times the few roundings of values of at most 2. One circle has no pairs:
    the second value is -inf.

    Raises:
        ValueError: the shapes are not (n, 2) and (n,); unchecked, it would read past the end.
    """
    if centers.shape[0] != radii.size or centers.shape[1] != 2:
        raise ValueError("Expected centers of shape (n, 2) and radii of shape (n,)")
    wall = overlap = -np.inf
    for i in range(radii.size):
        x, y = centers[i, 0], centers[i, 1]
        wall = max(wall, radii[i] - min(min(x, y), min(1.0 - x, 1.0 - y)))
        for j in range(i):
            distance = math.hypot(x - centers[j, 0], y - centers[j, 1])
            overlap = max(overlap, radii[i] + radii[j] - distance)
    return wall, overlap


def exact_packing(centers: Floats, radii: Floats) -> Packing:
    """Reduce all radii by the smallest amount s >= 0 that makes the packing valid.

    The radii become ``max(0, r_i - s)``. One amount for all, and not the best one for each
    circle (a linear program), so that the radii stay the program's own work and the result is
    the one that published packings were corrected by. (1) is solved for s:

        s = max(0, r_i - w_i, (r_i + r_j - d_ij) / 2, max(r_i, r_j) - d_ij)              (2)

    over all i and j; the last term covers a pair of which the smaller circle vanishes. Every
    float is an integer over a common power of two B >= 2^96. For integers, r_i + r_j <= d_ij is
    the same as r_i + r_j <= floor(d_ij), and Newton's steps give that floor exactly. So s is the
    smallest multiple of 1/B that is valid: at most 1.3e-29 above the smallest real one.

    Raises:
        ValueError: the shapes are not (n, 2) and (n,), a value is not finite, a radius is below
            0 or a centre lies outside the square; the last two can't be shrunk away.
    """
    if centers.shape != (radii.size, 2) or radii.ndim != 1:
        raise ValueError(
            f"Expected centers of shape (n, 2) and radii of shape (n,), but they had shapes "
            f"{centers.shape} and {radii.shape}"
        )
    _check(centers, radii)
    shrink, radii_sum, bits = _native.verify_packing(
        centers=centers.ravel().tolist(), radii=radii.tolist(), grid_bits=GRID_BITS
    )
    unit = 1 << bits
    return Packing(shrink=Fraction(shrink, unit), radii_sum=Fraction(radii_sum, unit))


def _check(centers: Floats, radii: Floats) -> None:
    if not (np.isfinite(centers).all() and np.isfinite(radii).all()):
        raise ValueError("centers or radii hold a value that is not finite")
    outside = ((centers < 0) | (centers > 1)).any(axis=1)
    faulty = np.flatnonzero(outside | (radii < 0))
    if not faulty.size:
        return
    i = int(faulty[0])
    (x, y), radius = centers[i].tolist(), float(radii[i])
    if radius < 0:
        raise ValueError(f"circle {i} has a negative radius, {radius:.6g}")
    raise ValueError(f"circle {i} has its center ({x:.6g}, {y:.6g}) outside the square")
