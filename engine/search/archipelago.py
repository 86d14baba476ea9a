"""The islands of a search: which there are, what each begins with, who goes from one to another.

They stand in a ring. Every ``migrate_every`` iterations of an island the best of its own programs
become candidates of the next one too. Where the settings let there be more islands than a run
begins with, a further one is opened once few children improve theirs (``engine.search.spawning``):
it joins the end of the ring, with population, archive, policies, window and mix of its own, and
begins with the best programs of all islands that may become its parents.

All of that is a fold over `Archipelago.begin_with` and `Archipelago.finish`, in the order of the
log, so no event has to say that an island was opened: a run that is told its log opens it again, at
the same place.

Covers: the islands as a whole. Does not cover what happens on one (``engine.search.island``), or
what is asked for (``engine.search.search``).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from engine.core import Candidate, Direction
from engine.search.features import Cell
from engine.search.island import Island
from engine.search.operators import Mix
from engine.search.parents import IslandBandit, ParentOutcome, rank
from engine.search.population import Entry, Population
from engine.search.spawning import FOUNDERS, Spawning
from engine.settings import IslandSettings

_STREAM = 0x15  # keeps the choice of an island apart from other draws of the same seed


class Archipelago:
    """Islands in a ring, each with its mix of operators."""

    def __init__(
        self,
        *,
        new_island: Callable[[int], Island],
        new_mix: Callable[[], Mix],
        islands: IslandSettings,
        direction: Direction,
        seed: int,
        cells: Mapping[str, Cell | None] | None,
        population: Population,
    ) -> None:
        """Start with islands without a program.

        Args:
            new_island: makes the island of a number, without a program.
            new_mix: makes an island's mix of operators, told nothing.
            islands: how many there are, and what they send each other.
            direction: of the scores.
            seed: of all choices.
            cells: of each candidate in the islands' archives, by id; None for islands without any.
            population: of all islands; it is told of a program before they are.
        """
        self._new_island = new_island
        self._new_mix = new_mix
        self._migration = islands
        self._direction = direction
        self._seed = seed
        self._cells = cells
        self._population = population
        self._islands: list[Island] = []
        self._mixes: list[Mix] = []
        for _ in range(islands.count):
            self._add()
        self._bandit = (
            IslandBandit(islands=islands.count, direction=direction)
            if islands.choice == "ucb"
            else None
        )
        self._spawning = (
            None
            if islands.most is None
            else Spawning(
                most=islands.most,
                below=islands.spawn_below,
                every=islands.spawn_every,
                direction=direction,
            )
        )

    def __len__(self) -> int:
        """Return how many islands there are now."""
        return len(self._islands)

    def home(self, island: int) -> Island:
        """Return an island.

        Raises:
            ValueError: there is none of this number.
        """
        if not 0 <= island < len(self):
            raise ValueError(f"there is no island {island}; there are {len(self)}, from 0")
        return self._islands[island]

    def mix(self, island: int) -> Mix:
        """Return the mix of operators of an island.

        Raises:
            ValueError: there is none of this number.
        """
        self.home(island)
        return self._mixes[island]

    def begin_with(self, entry: Entry, candidate: Candidate) -> None:
        """Take in a program that the run begins with, on the islands that begin with it."""
        for island in range(len(self)):
            if entry.islands is None or island in entry.islands:
                self._found(island, entry, candidate)

    def finish(self, island: int, told: ParentOutcome) -> None:
        """Take in that an iteration of an island is over: a further one is opened, some migrate.

        Args:
            island: its number.
            told: what became of the iteration's parent, once the island itself was told.
        """
        if self._bandit is not None:
            self._bandit.tell(island, told)
        if self._spawning is not None:
            self._spawning.tell(island, told)
            if self._spawning.is_due(islands=len(self)):
                self._open(self._spawning)
        self._migrate(island)

    def preferred(self, islands: Sequence[int], *, iteration: int) -> int | None:
        """Return which of some islands is to have the room for the next call.

        Args:
            islands: at least one, in ascending order.
            iteration: the number of the next call, from which the chance in it derives.

        Returns:
            None where islands take turns.

        Raises:
            ValueError: there is no such island.
        """
        if self._bandit is None:
            return None
        rng = np.random.default_rng([self._seed, iteration, 0, _STREAM])
        return self._bandit.choose(islands, key=int(rng.integers(2**64, dtype=np.uint64)))

    def _add(self) -> None:
        """Add an island without a program."""
        self._islands.append(self._new_island(len(self)))
        self._mixes.append(self._new_mix())

    def _open(self, spawning: Spawning) -> None:
        """Add an island that begins with the best programs of all, the worst of them first.

        Where islands have archives, these are programs with a cell: with none of them in its
        archive an island would have nobody to change.
        """
        known = (
            each
            for each in self._population.candidates()
            if self._cells is None or self._cells[each.id] is not None
        )
        best = heapq.nsmallest(FOUNDERS, known, key=lambda each: rank(each, self._direction))
        self._add()
        if self._bandit is not None:
            self._bandit.add()
        spawning.opened()
        for candidate in reversed(best):
            self._found(len(self) - 1, self._population.entry(candidate.id), candidate)

    def _migrate(self, island: int) -> None:
        """Send an island's best on, if it is time."""
        home, every = self._islands[island], self._migration.migrate_every
        if every == 0 or home.finished % every or len(self) == 1:
            return
        neighbour = (island + 1) % len(self)
        for migrant in home.migrants(self._migration.migrants):
            self._islands[neighbour].welcome(self._population.entry(migrant.id), migrant)
            self._let_know(neighbour, migrant)

    def _found(self, island: int, entry: Entry, candidate: Candidate) -> None:
        self._islands[island].begin_with(entry, candidate)
        self._let_know(island, candidate)

    def _let_know(self, island: int, guest: Candidate) -> None:
        for each in (self._bandit, self._spawning):
            if each is not None:
                each.welcome(island, guest)
