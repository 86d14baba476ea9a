"""Mutations of an island's best programs, as fills."""

from functools import partial

from engine.core import Program
from engine.fill.maker import Idea, chance
from engine.mutation import mutated
from engine.search.search import Search
from engine.settings import FillSettings
from engine.store import RunHistory
from engine.syntax import read

MUTATION = "mutation"


class Mutations:
    """Mutates one of the best programs of each island in turn."""

    def __init__(
        self, search: Search, *, history: RunHistory, settings: FillSettings, seed: int
    ) -> None:
        """Go on behind the last mutation that was recorded.

        Args:
            search: knows the programs.
            history: of the run, with all fills so far.
            settings: the run's.
            seed: the run's.
        """
        self._search = search
        self._most = settings.parents
        self._seed = seed
        samples = (each.sample for each in history.fills.values() if each.maker == MUTATION)
        self._asked = 1 + max(samples, default=-1)

    def propose(self) -> Idea | None:
        """See `Maker`."""
        number = self._asked
        self._asked += 1
        island = number % self._search.islands
        best = self._search.best(island, most=self._most)
        if not best:
            return None
        rng = chance(self._seed, island, number)
        parent, seed = best[int(rng.integers(len(best)))], int(rng.integers(2**63))
        make = partial(mutation_of, parent.program, seed=seed)
        return Idea(maker=MUTATION, parent=parent.id, island=island, sample=number, make=make)

    def tell(self, parent: str, sample: int, score: float | None) -> None:
        """Learn nothing: it is chance."""


def mutation_of(program: str, *, seed: int) -> Program | None:
    """Return a mutation of a program; None where chance finds none."""
    found = read(mutated(program, seed=seed, temperature=1.0))
    return None if found is None or found.text == program else found
