"""The search's contract with the loop: ask for proposals, tell scores.

`Search.tell` may come in any order and more than once. All chance derives from the run's seed and
the number of the iteration, so a run that was killed and resumed asks what it would have asked.
"""

from __future__ import annotations

import numpy as np

from engine.core import Candidate, Direction, Evaluation, Proposal, Refusal
from engine.search.parents import best_of, choose_parent
from engine.search.population import Population
from engine.settings import SearchSettings


class Search:
    """One population, a hybrid choice of parents, and a fixed mix of operators."""

    def __init__(self, *, settings: SearchSettings, direction: Direction, seed: int) -> None:
        self._settings = settings
        self._direction = direction
        self._seed = seed
        self._population = Population()
        self._operators = sorted(name for name, w in settings.operators.items() if w > 0)

    def ask(self, iteration: int) -> Proposal:
        """Return the proposal of an iteration, given what was told of the iterations before it.

        Children of the iteration itself do not count, so an iteration that was cut short is
        proposed again as it was.

        Raises:
            ValueError: no valid candidate was told yet.
        """
        candidates = self._population.candidates(before=iteration)
        if not candidates:
            raise ValueError("nothing to start from: no valid candidate was told")
        rng = np.random.default_rng([self._seed, iteration])
        parent = choose_parent(
            candidates, direction=self._direction, settings=self._settings.parent, rng=rng
        )
        weights = np.array([self._settings.operators[name] for name in self._operators])
        operator = self._operators[int(rng.choice(len(weights), p=weights / weights.sum()))]
        return Proposal(
            iteration=iteration,
            parent=parent,
            history=self._history(candidates, parent),
            operator=operator,
            k=self._settings.k,
            seed=int(rng.integers(2**63)),
            failures=self._population.failures(
                parent.id, before=iteration, most=self._settings.failures
            ),
        )

    def refusal(self, program: str | None, *, parent: Candidate) -> Refusal | None:
        """Return why a child would not be worth an evaluation, or None if it is."""
        return self._population.refusal(program, parent=parent)

    def admit(
        self, candidate_id: str, program: str, *, iteration: int, parent: str | None = None
    ) -> None:
        """Take a program in whose evaluation follows; admitting it again changes nothing.

        Args:
            iteration: that generated it; -1 for the initial program.
            parent: id of the program that it was made from; None for the initial program.
        """
        self._population.admit(candidate_id, program, iteration=iteration, parent=parent)

    def tell(self, candidate_id: str, evaluation: Evaluation) -> None:
        """Take in the verdict on an admitted program; the first one told counts."""
        self._population.tell(candidate_id, evaluation)

    def best(self) -> Candidate | None:
        """Return the best candidate, of equal ones the shortest; None before the first."""
        candidates = self._population.candidates()
        return best_of(candidates, self._direction) if candidates else None

    def _history(self, candidates: list[Candidate], parent: Candidate) -> tuple[Candidate, ...]:
        others = [each for each in candidates if each.id != parent.id]
        others.sort(key=lambda each: each.score, reverse=self._direction is Direction.MINIMISE)
        return tuple(others[len(others) - min(self._settings.history, len(others)) :])
