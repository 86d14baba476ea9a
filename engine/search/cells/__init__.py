"""The contract of the cells: how the space of an archive's features is cut.

A program's cell follows from its features and the run's seed alone, never from other programs. It
is recorded with the program's verdict.

Covers: the interface. Does not cover which features there are (``engine.search.features``), or who
keeps a cell (``engine.search.archive``).
"""

from collections.abc import Iterator, Sequence
from typing import overload

from engine.core import Cell, Feature
from engine.registry import Policies, Policy
from engine.section import section


class Cells(Sequence[Feature]):
    """An archive's features, and the cells into which their space is cut."""

    def __init__(self, features: Sequence[Feature]) -> None:
        """``features``: at least one."""
        self._features = tuple(features)

    def cell(self, values: Sequence[float]) -> Cell:
        """Return the cell that a program falls into.

        Args:
            values: of the features, in their order; what lies outside a range counts as on its
                edge.

        Raises:
            ValueError: a value is not a number.
        """
        raise NotImplementedError

    def __len__(self) -> int:
        """Return how many features there are."""
        return len(self._features)

    @overload
    def __getitem__(self, index: int) -> Feature: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Feature]: ...
    def __getitem__(self, index: int | slice) -> Feature | Sequence[Feature]:
        """Return a feature, or some."""
        return self._features[index]

    def __iter__(self) -> Iterator[Feature]:
        """Go through the features."""
        return iter(self._features)


@section
class CellSettings(Policy):
    """How cells are made, as it is configured under ``search.cells``."""

    def make(self, features: Sequence[Feature], *, seed: int) -> Cells:
        """Return the cells of an archive.

        Args:
            features: at least one.
            seed: the run's.
        """
        raise NotImplementedError


CELLS = Policies(CellSettings, package=__package__, group="brood.cells")
