"""The elites of an island: its archive now, and as it was before the iteration that is open.

Covers: whom an island with an archive chooses its parents from, and how many children of an
iteration took over a cell. Does not cover who keeps a cell (``archive``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.core import Candidate, Direction, Feature
from engine.search.archive import Archive
from engine.search.features import Cell
from engine.search.population import Place


class Elites:
    """An archive that knows which of its programs are new; what it holds is a set, not an order."""

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

    @property
    def candidates(self) -> list[Candidate]:
        """The programs that the cells keep now, in the order of their places."""
        return self._now.elites

    def welcome(self, place: Place, candidate: Candidate) -> None:
        """Take in a guest."""
        self._tell(self._now, place, candidate)
        self._tell(self._before, place, candidate)

    def tell(self, place: Place, candidate: Candidate) -> None:
        """Take in a child of the island's own, once."""
        self._tell(self._now, place, candidate)
        self._new.append((place, candidate))

    def taken_over(self, iteration: int) -> int:
        """Return how many children of an iteration that is not finished took over a cell.

        It was empty, or its elite worse. Each child is compared with the archive as it was before
        the iteration, guests that came since included; so two siblings may take over the same cell.
        """
        return sum(
            self._before.placement(child, place=place, cell=self._cells[child.id]).changes
            for place, child in self._new
            if place[0] == iteration
        )

    def finish(self, iteration: int) -> None:
        """Close an iteration: the next one's children are compared with its too."""
        for place, child in self._new:
            if place[0] == iteration:
                self._tell(self._before, place, child)
        self._new = [each for each in self._new if each[0][0] != iteration]

    def _tell(self, archive: Archive, place: Place, candidate: Candidate) -> None:
        archive.tell(candidate, place=place, cell=self._cells[candidate.id])
