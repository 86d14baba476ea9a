"""The search's contract with the loop: ask for proposals, tell scores.

`Search.tell` may come in any order and more than once. All chance derives from the run's seed and
the number of the iteration, so a run that was killed and resumed asks what it would have asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from engine.core import Candidate, Direction, Evaluation, Proposal, Refusal, Turn
from engine.search.cost_aware import CostAwareWidth
from engine.search.parents import best_of, choose_parent, normalised
from engine.search.population import FIRST_ITERATION, Entry, Population
from engine.search.width import FixedWidth, IterationOutcome, TurboEvolveWidth, WidthPolicy
from engine.search.window import Window
from engine.settings import PromptSettings, SearchSettings, WidthSettings


class Search:
    """One population, a hybrid choice of parents, and a fixed mix of operators."""

    def __init__(
        self,
        *,
        settings: SearchSettings,
        width: WidthSettings,
        prompts: PromptSettings,
        direction: Direction,
        seed: int,
        size: Callable[[str], int],
    ) -> None:
        """Start without a program.

        Args:
            settings: how parents and operators are chosen.
            width: how many children each parent gets.
            prompts: how many other programs are to be shown, and for which layout.
            direction: of the scores.
            seed: of all choices.
            size: of a program's text, in the tokens that ``prompts`` counts.
        """
        self._settings = settings
        self._prompts = prompts
        self._direction = direction
        self._seed = seed
        self._size = size
        self._population = Population()
        self._width = _width_policy(width, k=settings.k, seed=seed)
        self._operators = sorted(name for name, w in settings.operators.items() if w > 0)
        self._window = self._new_window()
        self._next = FIRST_ITERATION  # the first iteration that the window does not know

    @property
    def direction(self) -> Direction:
        """Of the scores."""
        return self._direction

    def ask(
        self, iteration: int, *, parent_id: str | None = None, k: int | None = None
    ) -> Proposal:
        """Return the proposal of an iteration, given what was told of the iterations before it.

        Children of the iteration itself do not count, so an iteration that was cut short is
        proposed again as it was.

        Args:
            iteration: counts from 0.
            parent_id: of the parent to take instead of the one that chance chooses.
            k: children to ask for instead of as many as the width policy chooses.

        Raises:
            ValueError: no valid candidate was told yet, or none of this id.
        """
        candidates = self._population.candidates(before=iteration)
        if not candidates:
            raise ValueError("nothing to start from: no valid candidate was told")
        rng = np.random.default_rng([self._seed, iteration])
        parent = choose_parent(
            candidates, direction=self._direction, settings=self._settings.parent, rng=rng
        )
        if parent_id is not None:
            parent = self._population.candidate(parent_id)
        weights = np.array([self._settings.operators[name] for name in self._operators])
        operator = self._operators[int(rng.choice(len(weights), p=weights / weights.sum()))]
        history: tuple[Candidate, ...] = ()
        lineage: tuple[Turn, ...] = ()
        if self._prompts.layout == "classic":
            history = self._best_others(candidates, parent)
        elif self._prompts.layout == "stable":
            history = self._window_before(iteration)
        else:
            lineage = self._population.lineage(parent.id, failures=self._settings.failures)
        return Proposal(
            iteration=iteration,
            parent=parent,
            history=history,
            operator=operator,
            k=self._width.k(iteration=iteration) if k is None else k,
            seed=int(rng.integers(2**63)),
            failures=self._population.failures(
                parent.id, before=iteration, most=self._settings.failures
            ),
            lineage=lineage,
            compactions=self._window.compactions,
        )

    def near(self, proposal: Proposal, *, tolerance: float, most: int) -> list[Candidate]:
        """Return other parents about as good as the proposal's, the latest first.

        Args:
            proposal: of which iteration, and beside whom.
            tolerance: the largest difference of the scores, as a share of the span from the worst
                to the best.
            most: how many.
        """
        candidates = self._population.candidates(before=proposal.iteration)
        scores = normalised(candidates, self._direction)
        own = next(s for c, s in zip(candidates, scores, strict=True) if c == proposal.parent)
        found = [
            candidate
            for candidate, score in zip(candidates, scores, strict=True)
            if abs(score - own) <= tolerance and candidate != proposal.parent
        ]
        return found[::-1][:most]

    def refusal(self, program: str | None, *, parent: Candidate) -> Refusal | None:
        """Return why a child would not be worth an evaluation, or None if it is."""
        return self._population.refusal(program, parent=parent)

    def admit(self, entry: Entry) -> None:
        """Take a program in whose evaluation follows; admitting it again changes nothing."""
        self._population.admit(entry)

    def tell(self, candidate_id: str, evaluation: Evaluation) -> None:
        """Take in the verdict on an admitted program; the first one told counts."""
        self._population.tell(candidate_id, evaluation)
        if self._population.iteration_of(candidate_id) < self._next:
            self._forget_window()  # a late verdict: the window was advanced without it

    def tell_outcome(self, outcome: IterationOutcome) -> None:
        """Take in what an iteration brought and cost; once for each, in their order."""
        self._width.tell(outcome)

    def best(self) -> Candidate | None:
        """Return the best candidate, of equal ones the shortest; None before the first."""
        candidates = self._population.candidates()
        return best_of(candidates, self._direction) if candidates else None

    def _best_others(
        self, candidates: Sequence[Candidate], parent: Candidate
    ) -> tuple[Candidate, ...]:
        """Return the best programs beside the parent that fit the budget, worst first."""
        others = [each for each in candidates if each.id != parent.id]
        others.sort(key=lambda each: each.score, reverse=self._direction is Direction.MAXIMISE)
        left = self._prompts.history_tokens
        chosen: list[Candidate] = []
        for each in others:
            left -= self._size(each.program)
            if left < 0:
                break
            chosen.append(each)
        return tuple(reversed(chosen))

    def _window_before(self, iteration: int) -> tuple[Candidate, ...]:
        if iteration < self._next:
            self._forget_window()
        arrived: dict[int, list[Candidate]] = {}
        for number, candidate in self._population.arrivals(first=self._next, before=iteration):
            arrived.setdefault(number, []).append(candidate)
        for number in sorted(arrived):
            self._window.advance(arrived[number])
        self._next = iteration
        return self._window.shown

    def _forget_window(self) -> None:
        """Begin it anew; the next time it is asked for it is made from what was told by then."""
        self._window, self._next = self._new_window(), FIRST_ITERATION

    def _new_window(self) -> Window:
        return Window(
            kept=self._prompts.history_tokens,
            growth=self._prompts.growth_tokens,
            size=self._size,
            direction=self._direction,
        )


def _width_policy(width: WidthSettings, *, k: int, seed: int) -> WidthPolicy:
    if width.kind == "fixed":
        return FixedWidth(k=k)
    if width.kind == "turboevolve":
        return TurboEvolveWidth()
    return CostAwareWidth(k_min=width.k_min, k_max=width.k_max, seed=seed, island=0)
