"""Archive: MAP-Elites, the best program of every cell of a grid of features.

Source: Mouret and Clune, "Illuminating search spaces by mapping elites", 2015. Each feature
(``features``) is cut into bins, and a cell is one bin of each. A cell keeps its best program: of
equal scores the shorter one, and of equally long ones the first by its place. So what an archive
holds depends on what it was told, not on the order.

Covers: who keeps which cell, and how many children of an iteration replaced an elite of their
island's archive. Does not cover which features there are, and so which cell is whose
(``features``), or who of the elites becomes a parent.
"""

from engine.core import Candidate, Cell, Direction, Place
from engine.search.roster import Roster, rank


class Archive:
    """The elites of an island, or of a run; what it holds is a set, not an order."""

    def __init__(self, *, direction: Direction) -> None:
        """Start empty; ``direction`` is that of the scores."""
        self._direction = direction
        self._elites: dict[Cell, Candidate] = {}
        self._roster: Roster | None = None  # what `_elites` holds, until that changes

    @property
    def elites(self) -> Roster:
        """The programs that the cells keep, in the order of their places."""
        if self._roster is None:
            self._roster = Roster(self._elites.values())
        return self._roster

    def improves(self, candidate: Candidate) -> bool:
        """Return whether a candidate's score is better than that of its cell's elite, if any."""
        elite = None if candidate.cell is None else self._elites.get(candidate.cell)
        return elite is not None and self._direction.better(candidate.score, than=elite.score)

    def tell(self, candidate: Candidate) -> None:
        """Take in a candidate; telling it again changes nothing."""
        if candidate.cell is None:
            return
        elite = self._elites.get(candidate.cell)
        if elite is None or self._key(candidate) < self._key(elite):
            self._elites[candidate.cell] = candidate
            self._roster = None

    def _key(self, candidate: Candidate) -> tuple[float, int, Place]:
        """Return what is smaller for the one that keeps a cell."""
        return (*rank(candidate, self._direction), candidate.place)


class Elites:
    """The archive of an island now, and as it was before the iteration that is open."""

    def __init__(self, *, direction: Direction) -> None:
        """Start empty; ``direction`` is that of the scores."""
        self._now = Archive(direction=direction)
        self._before = Archive(direction=direction)
        self._new: list[Candidate] = []  # of iterations that are not over

    @property
    def candidates(self) -> Roster:
        """The programs that the cells keep now, in the order of their places."""
        return self._now.elites

    def receive(self, candidate: Candidate) -> None:
        """Take in a migrant."""
        self._now.tell(candidate)
        self._before.tell(candidate)

    def tell(self, candidate: Candidate) -> None:
        """Take in a child of the island's own, once."""
        self._now.tell(candidate)
        self._new.append(candidate)

    def replaced(self, iteration: int) -> int:
        """Return how many children of an iteration that is not finished replaced an elite.

        One that fills an empty cell replaces nothing, and neither does one that is as good as the
        elite and shorter: it takes the cell here, and would not in OpenEvolve's archive, which
        compares scores alone. Each child is compared with the archive as it
        was before the iteration, plus the migrants that came since. So two siblings may replace the
        same elite.
        """
        return sum(self._before.improves(each) for each in self._new if each.iteration == iteration)

    def finish(self, iteration: int) -> None:
        """Close an iteration: from now on, children are compared with its children too."""
        for child in self._new:
            if child.iteration == iteration:
                self._before.tell(child)
        self._new = [each for each in self._new if each.iteration != iteration]
