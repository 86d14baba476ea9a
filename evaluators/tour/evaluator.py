"""Round trips through points in the plane: how short are the tours that a program plans?

The points are drawn from fixed seeds, evenly in a square and in groups, so a program's score is the
same every time. A tour is compared with the shortest one known. A long search found it, with 2-opt
and Or-opt steps and restarts from a tour whose parts changed places; it need not be the shortest.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.core import ArraySpec, Case, Outputs, Rejected

SIZES = (80, 120, 160, 200)
GROUPS = (0, 6, 0, 10)
"""Around how many centres the points of each case lie; 0 for points all over the square."""
BEST_LENGTHS = (7.291018877, 4.502619757, 9.671040598, 6.456456755)
"""The length of the shortest tour known of each case."""


def points_of(case: int) -> NDArray[np.float64]:
    """Return the points of a case, shape (n, 2), in a square of side 1."""
    rng = np.random.default_rng([20, case])
    size, groups = SIZES[case], GROUPS[case]
    if not groups:
        return rng.random((size, 2))
    centres = rng.uniform(0.1, 0.9, (groups, 2))
    points: NDArray[np.float64] = centres[np.arange(size) % groups]
    return np.clip(points + rng.normal(0, 0.05, (size, 2)), 0, 1)


def cases() -> Sequence[Case]:
    """Return one case for each set of points."""
    return [
        Case(
            name=f"{size} points",
            args=(points_of(number),),
            outputs={"tour": ArraySpec(shape=(size,), dtype="int64")},
        )
        for number, size in enumerate(SIZES)
    ]


def score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
    """Return the mean of the shortest known lengths over those planned, 1 for as short a tour.

    ``longest_step`` is the longest step over the mean one, ``near_steps`` the share of steps that
    go to one of the two nearest points; both are means over the cases.

    Raises:
        Rejected: a tour does not visit every point once.
    """
    shares, longest, near = [], [], []
    for number, output in enumerate(outputs):
        tour, points = output["tour"], points_of(number)
        if not np.array_equal(np.sort(tour), np.arange(len(points))):
            raise Rejected(f"the tour of {len(points)} points does not visit every point once")
        steps = np.linalg.norm(points[tour] - points[np.roll(tour, -1)], axis=1)
        shares.append(BEST_LENGTHS[number] / steps.sum())
        longest.append(steps.max() / steps.mean())
        between = np.linalg.norm(points[:, None] - points[None], axis=2)
        second = np.partition(between, 2, axis=1)[:, 2]  # 0 is the point itself
        near.append(np.mean(steps <= second[tour]))
    return {
        "score": float(np.mean(shares)),
        "longest_step": float(np.mean(longest)),
        "near_steps": float(np.mean(near)),
    }
