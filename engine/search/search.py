"""The search's contract with the loop: ask for proposals, tell scores, finish iterations.

The search is a fold over `Search.admit`, `Search.tell` and `Search.finish`, in the order of the
run's log, and an ask uses everything that was told before it and changes nothing. All chance
derives from the run's seed, the island and the number of the iteration. So a run that was killed,
and is told its log, asks what it would have asked.

**Islands.** Each has its own candidates, window, width policy and failed attempts. They share the
initial program, and know each other's programs as duplicates. Every ``migrate_every`` iterations
of an island its best programs become candidates of the next one too, in a ring. The calls of
different islands may be told in any order, as long as each island's own keep theirs: what an ask
returns depends on that only through which migrants have arrived.

**Common random numbers.** The way to choose a parent, the operator and the seed of a proposal do
not depend on the candidates, and the parent depends on them as little as its distribution allows
(``engine.search.race``). So a proposal that is made before the last verdicts are in
(`Search.predict`) is mostly the one that is made afterwards (`Search.verify`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from engine.core import Candidate, Direction, Evaluation, Pending, Proposal, Refusal, Turn
from engine.search.cost_aware import CostAwareWidth
from engine.search.island import Island
from engine.search.parents import ParentPolicy, best_of, make_policy, normalised
from engine.search.population import FIRST_ITERATION, Entry, Population
from engine.search.predictor import Expert, Guesses, Predictor
from engine.search.width import FixedWidth, IterationOutcome, TurboEvolveWidth, WidthPolicy
from engine.search.window import Window
from engine.settings import (
    IslandSettings,
    ParentSettings,
    PromptSettings,
    SearchSettings,
    WidthSettings,
)


class Search:
    """Islands, a policy for parents and one for the width, and a fixed mix of operators."""

    def __init__(
        self,
        *,
        settings: SearchSettings,
        width: WidthSettings,
        islands: IslandSettings,
        prompts: PromptSettings,
        direction: Direction,
        seed: int,
        size: Callable[[str], int],
    ) -> None:
        """Start without a program.

        Args:
            settings: how parents and operators are chosen.
            width: how many children each parent gets.
            islands: how many there are, and what they send each other.
            prompts: how many other programs are to be shown, and for which layout.
            direction: of the scores.
            seed: of all choices.
            size: of a program's text, in the tokens that ``prompts`` counts.
        """
        self._settings = settings
        self._migration = islands
        self._prompts = prompts
        self._direction = direction
        self._seed = seed
        self._size = size
        self._population = Population()
        self._operators = sorted(name for name, w in settings.operators.items() if w > 0)
        self._islands = [
            Island(
                window=Window(
                    kept=prompts.history_tokens if prompts.layout == "stable" else 0,
                    growth=prompts.growth_tokens,
                    size=size,
                    direction=direction,
                ),
                width=_width_policy(width, k=settings.k, seed=seed, island=number),
                parents=_parent_policy(settings.parent, direction),
                direction=direction,
            )
            for number in range(islands.count)
        ]
        self._predictors = [Predictor() for _ in self._islands]

    @property
    def direction(self) -> Direction:
        """Of the scores."""
        return self._direction

    @property
    def islands(self) -> int:
        """How many there are; they are numbered from 0."""
        return len(self._islands)

    def ask(
        self,
        iteration: int,
        *,
        island: int,
        parent_id: str | None = None,
        k: int | None = None,
        ahead: tuple[Pending, ...] = (),
    ) -> Proposal:
        """Return the proposal of an island's iteration, given everything that was told so far.

        Args:
            iteration: counts from 0, over all islands.
            island: its number.
            parent_id: of the parent to take instead of the one that chance chooses.
            k: children to ask for instead of as many as the width policy chooses.
            ahead: candidates of the island that were not admitted yet, to show as pending.

        Raises:
            ValueError: there is no such island, or no valid candidate was told yet, or none of
                this id.
        """
        home = self._home(island)
        candidates = home.candidates
        if not candidates:
            raise ValueError("nothing to start from: no valid candidate was told")
        parent, operator, seed = self._draw(home, iteration=iteration, island=island)
        if parent_id is not None:
            parent = self._population.candidate(parent_id)
        history: tuple[Candidate, ...] = ()
        lineage: tuple[Turn, ...] = ()
        failures = self._settings.failures
        if self._prompts.layout == "classic":
            history = self._best_others(candidates, parent)
        elif self._prompts.layout == "stable":
            history = home.shown
        else:
            lineage = self._population.lineage(parent.id, failures=failures)
        return Proposal(
            iteration=iteration,
            parent=parent,
            history=history,
            operator=operator,
            k=home.k(iteration=iteration) if k is None else k,
            seed=seed,
            failures=self._population.failures(parent.id, island=island, most=failures),
            lineage=lineage,
            compactions=home.compactions,
            island=island,
            pending=home.pending + ahead if self._prompts.history_tokens else (),
        )

    def predict(self, iteration: int, *, island: int, ahead: tuple[Pending, ...] = ()) -> Proposal:
        """Return what `ask` is expected to return once the verdicts that are out are in.

        The parent is the predictor's guess. What is shown is what is known now; the programs
        without a verdict are shown as such, and so are those ``ahead``.

        Raises:
            ValueError: as `ask`.
        """
        drawn = self.ask(iteration, island=island, ahead=ahead)
        home = self._home(island)
        best = best_of(home.candidates, self._direction).id
        again = home.last_parent or drawn.parent.id
        guess = self._predictors[island].guess(
            iteration,
            {Expert.DRAW: drawn.parent.id, Expert.BEST: best, Expert.AGAIN: again},
        )
        if guess == drawn.parent.id:
            return drawn
        return self.ask(iteration, island=island, parent_id=guess, ahead=ahead)

    def verify(self, proposal: Proposal) -> Proposal:
        """Return what `ask` returns now for a predicted proposal's iteration.

        To be called when the iteration before it is finished: the predictor learns which of its
        guesses were right. Verifying again, or what another process predicted, teaches it nothing.
        """
        asked = self.ask(proposal.iteration, island=proposal.island)
        self._predictors[proposal.island].learn(proposal.iteration, parent=asked.parent.id)
        return asked

    def predictor_figures(self) -> Mapping[Expert, Guesses]:
        """Return how often each way to guess a parent was right, over all islands."""
        return {
            expert: sum((each.figures[expert] for each in self._predictors), start=Guesses())
            for expert in Expert
        }

    def near(self, proposal: Proposal, *, tolerance: float, most: int) -> list[Candidate]:
        """Return other parents about as good as the proposal's, the latest first.

        Args:
            proposal: of which island, and beside whom.
            tolerance: the largest difference of the scores, as a share of the span from the worst
                to the best.
            most: how many.
        """
        candidates = self._home(proposal.island).candidates
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

    def programs(self, island: int) -> list[Candidate | Pending]:
        """Return an island's candidates and its own programs without a verdict.

        Raises:
            ValueError: there is no such island.
        """
        home = self._home(island)
        return [*home.candidates, *home.pending]

    def admit(self, entry: Entry) -> None:
        """Take a program in whose evaluation follows; admitting it again changes nothing.

        Raises:
            ValueError: there is no such island.
        """
        home = self._home(entry.island)
        if self._population.admit(entry) and entry.iteration != FIRST_ITERATION:
            home.admit(entry)

    def tell(self, candidate_id: str, evaluation: Evaluation) -> None:
        """Take in the verdict on an admitted program; the first one told counts.

        Raises:
            KeyError: no program was admitted under this id.
        """
        if not self._population.tell(candidate_id, evaluation):
            return
        entry = self._population.entry(candidate_id)
        valid = evaluation.score is not None
        candidate = self._population.candidate(candidate_id) if valid else None
        if entry.iteration != FIRST_ITERATION:
            self._islands[entry.island].tell(entry, candidate)
        elif candidate is not None:
            for number, island in enumerate(self._islands):
                if entry.islands is None or number in entry.islands:
                    island.begin_with(entry, candidate)

    def finish(self, outcome: IterationOutcome) -> None:
        """Take in that an iteration is over, and what it cost; all its verdicts were told.

        Raises:
            ValueError: there is no such island, this iteration or a later one of the island was
                finished before, or one of its programs has no verdict.
        """
        home = self._home(outcome.island)
        home.finish(outcome)
        every = self._migration.migrate_every
        if every == 0 or home.finished % every or self.islands == 1:
            return
        neighbour = self._islands[(outcome.island + 1) % self.islands]
        for migrant in home.migrants(self._migration.migrants):
            neighbour.welcome(self._population.entry(migrant.id), migrant)

    def best(self) -> Candidate | None:
        """Return the best candidate, of equal ones the shortest; None before the first."""
        candidates = self._population.candidates()
        return best_of(candidates, self._direction) if candidates else None

    def _home(self, island: int) -> Island:
        if not 0 <= island < self.islands:
            raise ValueError(f"there is no island {island}; there are {self.islands}, from 0")
        return self._islands[island]

    def _draw(self, home: Island, *, iteration: int, island: int) -> tuple[Candidate, str, int]:
        """Return an iteration's parent, operator and seed; the last two without a look at them."""
        rng = np.random.default_rng([self._seed, island, iteration])
        parent = home.choose(u=rng.random(), key=int(rng.integers(2**64, dtype=np.uint64)))
        weights = np.array([self._settings.operators[name] for name in self._operators])
        operator = self._operators[int(rng.choice(len(weights), p=weights / weights.sum()))]
        return parent, operator, int(rng.integers(2**63))

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


def _width_policy(width: WidthSettings, *, k: int, seed: int, island: int) -> WidthPolicy:
    if width.kind == "fixed":
        return FixedWidth(k=k)
    if width.kind == "turboevolve":
        return TurboEvolveWidth()
    return CostAwareWidth(k_min=width.k_min, k_max=width.k_max, seed=seed, island=island)


def _parent_policy(parent: ParentSettings, direction: Direction) -> ParentPolicy:
    parameters = {
        "hybrid": ("p_elite", "p_uniform", "gamma", "epsilon"),
        "power": ("gamma", "epsilon"),
    }
    chosen = {name: getattr(parent, name) for name in parameters.get(parent.policy, ())}
    return make_policy(parent.policy, direction=direction, **chosen)
