"""Archive: MAP-Elites, the best program of every cell of a grid of features.

Source: Mouret and Clune, "Illuminating search spaces by mapping elites", 2015. Each feature
(``features``) is cut into bins; a cell is one bin of each. It keeps its best program: of equal
scores the shorter one, and of equally long ones the first by its place. So what an archive holds
depends on what it was told, not on the order.

Covers: who keeps which cell. Does not cover which features there are, and so which cell is whose
(``features``), or who becomes a parent.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from engine.core import Candidate, Direction, Feature
from engine.search.features import Cell
from engine.search.parents import rank
from engine.search.population import Place


class Placement(enum.StrEnum):
    """What a candidate does, or did, to an archive."""

    FILLED = "filled"  # its cell was empty
    REPLACED = "replaced"  # it took over its cell
    REJECTED = "rejected"  # its cell holds a better one, or itself
    OUTSIDE = "outside"  # it has no cell

    @property
    def changes(self) -> bool:
        """Whether a cell has a new elite."""
        return self in (Placement.FILLED, Placement.REPLACED)


class Archive:
    """The elites of one island, or of a run."""

    def __init__(self, *, features: Sequence[Feature], direction: Direction) -> None:
        """Start empty.

        Args:
            features: the dimensions; with none there is one cell, which the best program has.
            direction: of the scores.

        Raises:
            ValueError: two features have the same name.
        """
        names = [feature.name for feature in features]
        if len(set(names)) < len(names):
            raise ValueError(f"features are named twice: {', '.join(names)}")
        self._direction = direction
        self._elites: dict[Cell, tuple[Place, Candidate]] = {}

    @property
    def elites(self) -> list[Candidate]:
        """The programs that the cells keep, in the order of their places."""
        return [elite for _, elite in sorted(self._elites.values(), key=lambda each: each[0])]

    def placement(self, candidate: Candidate, *, place: Place, cell: Cell | None) -> Placement:
        """Return what `tell` would do now; nothing changes."""
        if cell is None:
            return Placement.OUTSIDE
        if cell not in self._elites:
            return Placement.FILLED
        is_better = self._key(place, candidate) < self._key(*self._elites[cell])
        return Placement.REPLACED if is_better else Placement.REJECTED

    def tell(self, candidate: Candidate, *, place: Place, cell: Cell | None) -> Placement:
        """Take in a candidate; return what became of it. Telling it again changes nothing.

        Args:
            candidate: the program with its score.
            place: where it stands among all programs.
            cell: its own; None if it has none.
        """
        placement = self.placement(candidate, place=place, cell=cell)
        if cell is not None and placement.changes:
            self._elites[cell] = (place, candidate)
        return placement

    def _key(self, place: Place, candidate: Candidate) -> tuple[float, int, Place]:
        """Return what is smaller for the one that keeps a cell."""
        return (*rank(candidate, self._direction), place)
