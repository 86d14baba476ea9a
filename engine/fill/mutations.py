"""Mutations of an island's best programs, as fills."""

from functools import partial

from engine.core import Program
from engine.fill.maker import Idea, chance
from engine.mutation import mutated
from engine.search.search import Search
from engine.settings import FillSettings
from engine.syntax import read

MUTATION = "mutation"


class Mutations:
    """Mutates one of the best programs of each island in turn."""

    def __init__(self, search: Search, *, settings: FillSettings, seed: int) -> None:
        self._search = search
        self._most = settings.parents
        self._seed = seed

    def propose(self, number: int) -> Idea | None:
        """See `Maker`."""
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
