"""CVT: a fixed number of cells, however many features there are, each around a centroid.

Source: Vassiliades, Chatzilygeroudis and Mouret, "Using centroidal Voronoi tessellations to scale
up the multidimensional archive of phenotypic elites algorithm", 2016 (arXiv 1610.05729), algorithms
1 and 2, as CodeEvolve uses it. The box of the features is scaled to [0, 1]^d; samples are drawn
uniformly from it; the centroids are the means that k-means finds of them, begun by k-means++. A
program is of the cell whose centroid is the nearest one, the first of those that are equally near.

All islands of a log share the centroids, so that a migrant keeps its cell. On a cluster, where each
island has a log and a seed of its own, a program gets its cell anew where it arrives.
"""

import math
import warnings
from collections.abc import Sequence
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from engine.core import Cell, Feature
from engine.search.cells import CELLS, Cells, CellSettings
from engine.section import Count, Whole, require, section

_STREAM = 0x56  # keeps the draws apart from others that derive from the same seed
_STEPS = 300  # of Lloyd's algorithm, as in CodeEvolve
MOST_SAMPLES = 1_000_000


@CELLS.register("cvt")
@section
class CvtSettings(CellSettings):
    """How the centroids are found.

    Attributes:
        centroids: how many cells there are.
        samples: points of the box that the centroids are the means of.
    """

    centroids: Count = 50
    samples: Annotated[Whole, Field(ge=1, le=MOST_SAMPLES)] = 1000

    @model_validator(mode="after")
    def _has_enough_samples(self) -> Self:
        must_be = f"at least search.cells.centroids ({self.centroids})"
        require(self.samples >= self.centroids, "samples", self.samples, must_be)
        return self

    def make(self, features: Sequence[Feature], *, seed: int) -> "Tessellation":
        """Return the tessellation of a run."""
        rng = np.random.default_rng([seed, 0, 0, _STREAM])
        points = rng.random((self.samples, len(features)))
        return Tessellation(features, centroids=centroids_of(points, count=self.centroids, rng=rng))


class Tessellation(Cells):
    """The cells around some centroids."""

    def __init__(self, features: Sequence[Feature], *, centroids: NDArray[np.float64]) -> None:
        """Take the centroids.

        Args:
            features: at least one.
            centroids: in [0, 1]^d, shape (cells, features).
        """
        super().__init__(features)
        self.centroids = centroids

    def cell(self, values: Sequence[float]) -> Cell:
        """Return the number of the nearest centroid, as a cell of one part."""
        point = np.array([_share(each, v) for each, v in zip(self, values, strict=True)])
        squares = np.square(self.centroids - point).sum(axis=1)
        return (int(np.argmin(squares)),)


def centroids_of(
    points: NDArray[np.float64], *, count: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the means that Lloyd's algorithm finds, shape (count, features).

    Args:
        points: in the unit box, shape (samples, features), at least ``count``.
        count: how many means.
        rng: of the first means.
    """
    from scipy.cluster.vq import kmeans2  # which few runs need, and is long to import

    with warnings.catch_warnings():
        # A cluster without a point keeps its mean: a cell that is hard to reach, and no error.
        warnings.filterwarnings("ignore", message="One of the clusters is empty")
        found, _ = kmeans2(points, count, iter=_STEPS, minit="++", rng=rng)
    means: NDArray[np.float64] = found
    return means


def _share(feature: Feature, value: float) -> float:
    """Return where a value stands in its feature's range, from 0 to 1."""
    if math.isnan(value):
        raise ValueError(f"feature {feature.name!r} is not a number")
    value = min(max(value, feature.low), feature.high)
    return (value - feature.low) / (feature.high - feature.low)
