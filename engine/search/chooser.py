"""Deciding what a call is made for: operator, parent, and how many children.

What is chosen follows from what the islands were told, the iteration's random numbers
(``engine.search.choice``), and the calls that were begun on guesses.

Covers: the choice of a call, and the one that is expected before all verdicts are in. Does not
cover how it is made (``parents``, ``operators``, ``width``, ``predictor``), or what a call shows
(``engine.search.search``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from engine.core import Direction, Proposal
from engine.search.archipelago import Archipelago
from engine.search.choice import Choice, chance_of
from engine.search.operators import CROSSOVER, REPAIR
from engine.search.parents import best_of
from engine.search.population import Population
from engine.search.predictor import Expert, Guesses, Predictor


class Chooser:
    """Chooses for every island; all it remembers is who guessed right, for what is begun early."""

    def __init__(
        self,
        *,
        islands: Archipelago,
        population: Population,
        operators: Sequence[str],
        direction: Direction,
        seed: int,
    ) -> None:
        """Start with nothing predicted.

        Args:
            islands: of the search.
            population: of all islands.
            operators: names of those that may be drawn, in an order that stays.
            direction: of the scores.
            seed: of all choices.
        """
        self._islands = islands
        self._population = population
        self._operators = operators
        self._direction = direction
        self._seed = seed
        self._predictors: defaultdict[int, Predictor] = defaultdict(Predictor)  # by island

    def choose(
        self,
        iteration: int,
        *,
        island: int,
        parent_id: str | None = None,
        rule: str = "given",
        guesses: Sequence[Proposal] = (),
    ) -> Choice:
        """Return what an iteration's call is made for; see `Search.ask`.

        Raises:
            ValueError: there is no such island, or nothing was told yet that may be a parent.
        """
        home = self._islands.home(island)
        if not home.eligible:
            raise ValueError("nothing to start from: no valid candidate was told")
        chance = chance_of(iteration, island=island, seed=self._seed)
        operator, repairs = self._operator(island, key=chance.operator, guesses=guesses)
        if repairs is not None:
            parent_id, rule = self._population.entry(repairs).parent, REPAIR
        if parent_id is None:
            u, key = chance.parent
            drawn = home.choose(u=u, key=key)
            parent_id, rule = drawn.candidate.id, drawn.rule
        partner = None
        if operator == CROSSOVER:
            u, key = chance.partner
            partner = home.choose(u=u, key=key, but=parent_id).candidate.id
        return Choice(
            parent=parent_id,
            rule=rule,
            operator=operator,
            k=home.k(iteration=iteration),
            partner=partner,
            repairs=repairs,
        )

    def expect(self, iteration: int, *, island: int, guesses: Sequence[Proposal] = ()) -> Choice:
        """Return what `choose` is expected to return once the verdicts that are out are in.

        The parent is the predictor's guess, but for a repair.

        Raises:
            ValueError: as `choose`.
        """
        drawn = self.choose(iteration, island=island, guesses=guesses)
        if drawn.repairs is not None:
            return drawn
        home = self._islands.home(island)
        best = best_of(home.eligible, self._direction).id
        again = home.last_parent or drawn.parent
        guess = self._predictors[island].guess(
            iteration, {Expert.DRAW: drawn.parent, Expert.BEST: best, Expert.AGAIN: again}
        )
        if guess == drawn.parent:
            return drawn
        return self.choose(iteration, island=island, parent_id=guess, guesses=guesses)

    def learn(self, iteration: int, *, island: int, parent: str) -> None:
        """Take in the parent that an iteration really has; see `Predictor.learn`."""
        self._predictors[island].learn(iteration, parent=parent)

    def figures(self) -> Mapping[Expert, Guesses]:
        """Return how often each way to guess a parent was right, over all islands."""
        predictors = self._predictors.values()
        return {
            expert: sum((each.figures[expert] for each in predictors), start=Guesses())
            for expert in Expert
        }

    def _operator(
        self, island: int, *, key: int, guesses: Sequence[Proposal]
    ) -> tuple[str, str | None]:
        """Return the operator of an island's call, and what it repairs if it is a repair.

        Not drawn are a crossover where there is one candidate, and a repair where nothing is to be
        repaired.
        """
        taken = [each.repairs_id for each in guesses if each.repairs_id is not None]
        broken = self._population.broken(island=island, but=taken)
        can = {CROSSOVER: len(self._islands.home(island).eligible) > 1, REPAIR: broken is not None}
        operator = self._islands.mix(island).choose(
            [name for name in self._operators if can.get(name, True)],
            key=key,
            guessed=[each.operator for each in guesses],
        )
        return operator, broken if operator == REPAIR else None
