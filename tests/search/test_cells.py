"""Cells around centroids: the nearest one by brute force, alike for a seed, in whatever box."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core import Evaluation, Feature
from engine.search.cells import CELLS, Cells
from engine.search.cells.cvt import Tessellation
from engine.search.cells.grid import Grid
from engine.search.features import cell_of
from engine.syntax import read

BOX = (Feature(name="lag", low=0, high=4, bins=4), Feature(name="snr", low=-1e6, high=1e6, bins=2))


def cvt(features: tuple[Feature, ...] = BOX, *, seed: int = 3, **parameters: int) -> Tessellation:
    made = CELLS.read({"policy": "cvt", **parameters}).make(features, seed=seed)
    assert isinstance(made, Tessellation)
    return made


def test_four_cells_by_hand() -> None:
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    cells = Tessellation(BOX, centroids=corners)
    # lag 1 of 4 is 1/4 and snr 0.2e6 of -1e6 to 1e6 is 0.6: the corner (0, 1) is the nearest.
    assert cells.cell([1.0, 0.2e6]) == (1,)
    assert cells.cell([3.0, -1e6]) == (2,)
    assert cells.cell([2.0, 0.0]) == (0,)  # equally near to all: the first
    assert cells.cell([-99.0, math.inf]) == (1,)  # outside counts as on the edge


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(min_value=0, max_value=2**40),
    values=st.tuples(st.floats(-1, 5), st.floats(-2e6, 2e6)),
)
def test_a_cell_is_that_of_the_nearest_centroid(seed: int, values: tuple[float, float]) -> None:
    cells = cvt(seed=seed, centroids=7, samples=60)
    shares = [min(max(values[0], 0), 4) / 4, (min(max(values[1], -1e6), 1e6) + 1e6) / 2e6]
    squares = [
        sum((a - b) ** 2 for a, b in zip(shares, point, strict=True))
        for point in cells.centroids.tolist()
    ]
    (found,) = cells.cell(values)
    assert squares[found] == pytest.approx(min(squares), rel=1e-9, abs=1e-12)


def test_centroids_follow_from_the_seed() -> None:
    one, same, other = (cvt(seed=seed).centroids for seed in (3, 3, 4))
    assert one.shape == (50, 2) and one.min() >= 0 and one.max() <= 1
    assert (one == same).all() and not (one == other).all()


def test_one_centroid_of_all_samples_is_their_mean() -> None:
    (centre,) = cvt(centroids=1, samples=20_000).centroids
    assert centre == pytest.approx([0.5, 0.5], abs=0.02)


def test_centroids_of_a_line_share_it_evenly() -> None:
    """By Lloyd's algorithm n centroids of a uniform line end near (i + 1/2) / n."""
    line = cvt(BOX[:1], centroids=4, samples=50_000).centroids
    assert np.sort(line[:, 0]) == pytest.approx([0.125, 0.375, 0.625, 0.875], abs=0.03)


@pytest.mark.parametrize("count", [1, 2, 40])
def test_as_many_centroids_as_samples(count: int) -> None:
    cells = cvt(centroids=count, samples=count)
    assert cells.centroids.shape == (count, 2) and np.isfinite(cells.centroids).all()


@pytest.mark.parametrize(
    "narrow",
    [
        Feature(name="lag", low=0.0, high=5e-324, bins=1),
        Feature(name="lag", low=-8e307, high=8e307, bins=1),
        Feature(name="lag", low=1.0, high=1.0 + 2**-52, bins=1),
    ],
)
def test_a_degenerate_range_has_cells_too(narrow: Feature) -> None:
    cells = cvt((narrow,), centroids=3, samples=9)
    for value in (-math.inf, narrow.low, narrow.high, math.inf, 0.0):
        assert 0 <= cells.cell([value])[0] < 3
    with pytest.raises(ValueError, match="is not a number"):
        cells.cell([math.nan])


def test_fewer_samples_than_centroids_are_refused() -> None:
    with pytest.raises(ValueError, match=r"search.cells.centroids \(50\)"):
        CELLS.read({"policy": "cvt", "samples": 49})


def test_a_grid_is_what_features_without_cells_are() -> None:
    evaluation = Evaluation(score=1.0, failure=None, metrics={"lag": 2.5, "snr": -3.0})
    grid: Cells = CELLS.read({"policy": "grid"}).make(BOX, seed=0)
    assert isinstance(grid, Grid) and tuple(grid) == BOX and len(grid) == 2
    for features in (BOX, grid):
        assert cell_of(read("x = 1"), evaluation, features=features) == (2, 0)
    assert cell_of(read("x = 1"), evaluation, features=cvt()) == cvt().cell([2.5, -3.0])
