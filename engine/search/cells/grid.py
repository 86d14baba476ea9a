"""Grid: a cell is one bin of each feature, as Mouret and Clune (2015) have it."""

from collections.abc import Sequence

from engine.core import Cell, Feature
from engine.search.cells import CELLS, Cells, CellSettings
from engine.section import section


@CELLS.register("grid")
@section
class GridSettings(CellSettings):
    """No parameters: each feature has its own bins."""

    def make(self, features: Sequence[Feature], *, seed: int) -> "Grid":
        """Return the grid, whatever the seed."""
        return Grid(features)


class Grid(Cells):
    """Bins of equal width of each feature; the cells are their product."""

    def cell(self, values: Sequence[float]) -> Cell:
        """Return the bin of each value."""
        return tuple(each.bin(value) for each, value in zip(self, values, strict=True))
