"""The islands of a search: what each begins with, and who goes from one to another.

Every ``migrate_every`` iterations of an island the best of its own programs become candidates of
its neighbours too, which the topology names (``engine.search.topologies``). That is a fold over
`Archipelago.begin_with` and `Archipelago.finish`, in the order of the log, so no event has to
record a migrant.

Covers: the islands as a whole. Does not cover what happens on one (``engine.search.island``), or
what is asked for (``engine.search.search``).
"""

from __future__ import annotations

from collections.abc import Callable

from engine.core import Candidate
from engine.search.island import Island
from engine.search.mixes import Mix
from engine.search.population import Entry, Population
from engine.settings import IslandSettings


class Archipelago:
    """Islands and their neighbours, each with its mix of operators."""

    def __init__(
        self,
        *,
        new_island: Callable[[int], Island],
        new_mix: Callable[[], Mix],
        islands: IslandSettings,
        population: Population,
    ) -> None:
        """Start with islands without a program.

        Args:
            new_island: makes the island of a number, without a program.
            new_mix: makes an island's mix of operators, told nothing.
            islands: how many there are, and what they send each other.
            population: of all islands; it is told of a program before they are.
        """
        self._migration = islands
        self._topology = islands.topology.make(islands=islands.count)
        self._population = population
        self._islands = [new_island(number) for number in range(islands.count)]
        self._mixes = [new_mix() for _ in range(islands.count)]

    def __len__(self) -> int:
        """Return how many islands there are."""
        return len(self._islands)

    def island(self, island: int) -> Island:
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
        self.island(island)
        return self._mixes[island]

    def begin_with(self, entry: Entry, candidate: Candidate) -> None:
        """Take in a program that the run begins with, on the islands that begin with it."""
        for number, island in enumerate(self._islands):
            if entry.islands is None or number in entry.islands:
                island.begin_with(entry, candidate)

    def finish(self, island: int) -> None:
        """Take in that an iteration of an island is over: if it is time, send its best on."""
        own, every = self._islands[island], self._migration.migrate_every
        if every == 0 or own.finished % every:
            return
        for neighbour in self._topology.targets(island):
            for migrant in own.migrants(self._migration.migrants):
                self._islands[neighbour].receive(self._population.entry(migrant.id), migrant)
