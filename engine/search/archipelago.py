"""The islands of a search: what each is made of, their migrants, and those that are opened later.

Covers: all islands together, and the mix of operators of each. Does not cover one island
(``island.py``), or what they share: ``population.py``.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from engine.core import Candidate, Direction
from engine.search.archive import Elites
from engine.search.island import Island
from engine.search.mixes import Mix
from engine.search.parents import ParentOutcome
from engine.search.roster import Roster, best_few
from engine.search.schedules import Schedule
from engine.search.widths import IterationOutcome, WidthSettings
from engine.search.window import Window
from engine.settings import IslandSettings, PromptSettings, SearchSettings

FOUNDERS = 5
"""Programs that an island begins with which is opened later, as in AdaEvolve's code."""


class Archipelago:
    """Islands by their numbers, from 0."""

    def __init__(
        self,
        settings: IslandSettings,
        *,
        search: SearchSettings,
        width: WidthSettings,
        prompts: PromptSettings,
        weights: Mapping[str, float],
        direction: Direction,
        seed: int,
        size: Callable[[str], int],
        has_archives: bool,
    ) -> None:
        """Start with islands that have no program.

        Args:
            settings: how many there are at first, what they send each other, and who may call.
            search: how parents and operators are chosen on each.
            width: how many children each parent gets.
            prompts: how much of an island its window shows.
            weights: of the operators.
            direction: of the scores.
            seed: of the run.
            size: of a program's text, in the tokens that ``prompts`` counts.
            has_archives: whether each has an archive.
        """
        self._settings, self._search = settings, search
        self._width, self._prompts = width, prompts
        self._weights = weights
        self._direction, self._seed = direction, seed
        self._size = size
        self._has_archives = has_archives
        self._islands = [self._new_island(number) for number in range(settings.count)]
        self._mixes = [self._new_mix() for _ in self._islands]
        self._topology = settings.topology.make(islands=settings.count)
        schedule = settings.schedule
        self._schedule = None if schedule is None else schedule.make(direction=direction)

    def __len__(self) -> int:
        return len(self._islands)

    def __iter__(self) -> Iterator[Island]:
        return iter(self._islands)

    def __getitem__(self, number: int) -> Island:
        """Return the island of a number.

        Raises:
            ValueError: there is none.
        """
        if not 0 <= number < len(self):
            raise ValueError(f"there is no island {number}; there are {len(self)}, from 0")
        return self._islands[number]

    def mix(self, number: int) -> Mix:
        """Return the mix of operators of an island.

        Raises:
            ValueError: there is none.
        """
        self[number]
        return self._mixes[number]

    def begin_with(self, first: Candidate, *, islands: Collection[int] | None) -> None:
        """Have islands begin with a program; all of them for None."""
        for number, island in enumerate(self._islands):
            if islands is None or number in islands:
                island.begin_with(first)
                if self._schedule is not None:
                    self._schedule.receive(number, first)

    def receive(self, number: int, candidate: Candidate) -> None:
        """Have an island take in a program that none of its calls made, and the schedule hear it.

        Raises:
            ValueError: there is no such island.
        """
        self[number].receive(candidate)
        if self._schedule is not None:
            self._schedule.receive(number, candidate)

    def best(self, count: int) -> list[Candidate]:
        """Return the best programs of all islands, the best first."""
        return self._best([each.candidates for each in self._islands], count)

    def finish(self, outcome: IterationOutcome) -> ParentOutcome:
        """Take in that an iteration of an island is over; see `Search.finish`."""
        own, every = self[outcome.island], self._settings.migrate_every
        told = own.finish(outcome)
        if self._schedule is not None:
            self._schedule.tell(outcome.island, told)
        if every and own.finished % every == 0:
            self._migrate(own, outcome.island)
        if self._schedule is not None and self._schedule.is_due(islands=len(self)):
            self._open(self._schedule)
        return told

    def scheduled(self, free: Sequence[int]) -> Sequence[int]:
        """Return which of the islands that have no call under way may call now."""
        return free if self._schedule is None else self._schedule.allowed(free, islands=len(self))

    def _best(self, rosters: Sequence[Roster], count: int) -> list[Candidate]:
        firsts = (each.first(count, self._direction) for each in rosters)
        every = {each.id: each for few in firsts for each in few}
        return best_few([*every.values()], count, self._direction)

    def _migrate(self, own: Island, number: int) -> None:
        for neighbour in self._topology.targets(number):
            for migrant in own.migrants(self._settings.migrants):
                self.receive(neighbour, migrant)

    def _open(self, schedule: Schedule) -> None:
        """Add an island, at the end of the topology, that begins with the best possible parents."""
        founders = self._best([each.eligible for each in self._islands], FOUNDERS)
        number = len(self)
        opened = self._new_island(number)
        self._islands.append(opened)
        self._mixes.append(self._new_mix())
        self._topology = self._settings.topology.make(islands=len(self))
        schedule.opened()
        for founder in founders:
            opened.begin_with(founder)
            schedule.receive(number, founder)

    def _new_island(self, number: int) -> Island:
        """Return the island of a number, without a program."""
        direction, prompts, search = self._direction, self._prompts, self._search
        shows_window = prompts.layout == "stable" and search.inspirations is None
        return Island(
            window=Window(
                kept=prompts.history_tokens if shows_window else 0,
                growth=prompts.growth_tokens,
                size=self._size,
                direction=direction,
            ),
            width=self._width.make(k=search.k, seed=self._seed, island=number),
            parents=search.parent.make(direction=direction),
            direction=direction,
            elites=Elites(direction=direction) if self._has_archives else None,
        )

    def _new_mix(self) -> Mix:
        return self._search.mix.make(weights=self._weights)
