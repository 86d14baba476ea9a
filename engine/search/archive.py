"""Archive: MAP-Elites, the best program of every cell of a grid of features.

Source: Mouret and Clune, "Illuminating search spaces by mapping elites", 2015. Each feature
(``features``) is cut into bins, and a cell is one bin of each. A cell keeps its best program: of
equal scores the shorter one, and of equally long ones the first by its place. So what an archive
holds depends on what it was told, not on the order.

Covers: who keeps which cell, and how many children of an iteration took over a cell of their
island's archive. Does not cover which features there are, and so which cell is whose
(``features``), or who of the elites becomes a parent.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence

from engine.core import Candidate, Direction, Feature
from engine.search.features import Cell
from engine.search.parents import rank
from engine.search.roster import Place, Roster


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
        return [*Roster(self.placed)]

    @property
    def placed(self) -> Collection[tuple[Place, Candidate]]:
        """The same, each with its place, in no order."""
        return self._elites.values()

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


class Elites:
    """The archive of an island now, and as it was before the iteration that is open.

    What it holds is a set, not an order.
    """

    def __init__(
        self,
        *,
        features: Sequence[Feature],
        direction: Direction,
        cells: Mapping[str, Cell | None],
    ) -> None:
        """Start empty.

        Args:
            features: of the archive.
            direction: of the scores.
            cells: of each candidate, by id; it may grow, and has to hold a candidate before it
                is taken in.
        """
        self._now = Archive(features=features, direction=direction)
        self._before = Archive(features=features, direction=direction)
        self._cells = cells
        self._new: list[tuple[Place, Candidate]] = []  # of iterations that are not over
        self._roster: Roster | None = None  # what `_now` holds, until that changes

    @property
    def candidates(self) -> Roster:
        """The programs that the cells keep now, in the order of their places."""
        if self._roster is None:
            self._roster = Roster(self._now.placed)
        return self._roster

    def receive(self, place: Place, candidate: Candidate) -> None:
        """Take in a migrant."""
        self._tell(self._now, place, candidate)
        self._tell(self._before, place, candidate)
        self._roster = None

    def tell(self, place: Place, candidate: Candidate) -> None:
        """Take in a child of the island's own, once."""
        self._tell(self._now, place, candidate)
        self._roster = None
        self._new.append((place, candidate))

    def taken_over(self, iteration: int) -> int:
        """Return how many children of an iteration that is not finished took over a cell.

        A child takes over a cell that was empty, or whose elite is worse. Each child is compared
        with the archive as it was before the iteration, plus the migrants that came since. So two
        siblings may take over the same cell.
        """
        return sum(
            self._before.placement(child, place=place, cell=self._cells[child.id]).changes
            for place, child in self._new
            if place[0] == iteration
        )

    def finish(self, iteration: int) -> None:
        """Close an iteration: from now on, children are compared with its children too."""
        for place, child in self._new:
            if place[0] == iteration:
                self._tell(self._before, place, child)
        self._new = [each for each in self._new if each[0][0] != iteration]

    def _tell(self, archive: Archive, place: Place, candidate: Candidate) -> None:
        archive.tell(candidate, place=place, cell=self._cells[candidate.id])
