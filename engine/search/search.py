"""The search's contract with the loop: ask for proposals, tell scores, finish iterations.

The search is a fold over `Search.begin`, `Search.admit`, `Search.tell` and `Search.finish`, in the
order of the run's log. An ask uses everything that was told before it and changes nothing. All
chance derives from the run's seed, the island and the number of the iteration. So a run that was
killed and is told its log asks for the same proposals again.

**Islands.** Each has its own candidates, window, width policy and failed attempts. They share the
initial program, and know each other's programs as duplicates. Their best migrate
(``engine.search.archipelago``). The calls of one island have to be told in their order; those of
different islands may mix. What an ask returns depends on the mixing only through the migrants that
have arrived, and when: AdaEvolve counts a migrant if it is the island's best on arrival, and
whether a child takes over a cell (`Search.improved`) depends on the migrants that are there.

**Archives.** With ``features`` each island has an archive, whose elites its parents are. What is
shown, what migrates and what is a duplicate stay as without an archive.

**Common random numbers.** The way to choose a parent and the seed of a proposal do not depend on
the candidates, and the operator, the parent and a crossover's partner depend on them as little as
their distributions allow (``engine.search.race``, ``engine.search.mixes``). So a proposal that
is asked for before the last verdicts are in is mostly the one that is asked for afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from engine.core import (
    Candidate,
    Direction,
    Evaluation,
    Feature,
    Pending,
    Program,
    Proposal,
    Refusal,
    Turn,
)
from engine.search.archipelago import Archipelago
from engine.search.archive import Elites
from engine.search.choice import Choice, Chooser, chance_of
from engine.search.features import Cell
from engine.search.island import Island
from engine.search.parents import ParentOutcome
from engine.search.population import FIRST_ITERATION, Entry, Population
from engine.search.roster import Roster
from engine.search.widths import IterationOutcome, WidthSettings
from engine.search.window import Window, best_that_fit
from engine.settings import (
    IslandSettings,
    PromptSettings,
    SearchSettings,
)


class Search:
    """Islands, and policies for parents, for the width and for the mix of operators."""

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
        features: Sequence[Feature] | None = None,
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
            features: of the islands' archives; None for islands without any.
        """
        self._settings = settings
        self._width = width
        self._prompts = prompts
        self._direction = direction
        self._seed = seed
        self._size = size
        self._population = Population()
        self._features = features
        self._cells: dict[str, Cell | None] = {}  # by candidate
        weights = {name: w for name, w in sorted(settings.operators.items()) if w > 0}
        self._islands = Archipelago(
            new_island=self._new_island,
            new_mix=partial(settings.mix.make, weights=weights),
            islands=islands,
            population=self._population,
        )
        self._chooser = Chooser(
            islands=self._islands,
            population=self._population,
            operators=list(weights),
            seed=seed,
        )

    @property
    def direction(self) -> Direction:
        """Of the scores."""
        return self._direction

    @property
    def features(self) -> Sequence[Feature] | None:
        """Of the islands' archives; None for islands without any."""
        return self._features

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
        ahead: tuple[Pending, ...] = (),
        begun: Sequence[Proposal] = (),
    ) -> Proposal:
        """Return the proposal of an island's iteration, given everything that was told so far.

        The last three arguments assume more than was told.

        Args:
            iteration: counts from 0, over all islands.
            island: its number.
            parent_id: the parent to take instead of the one that chance chooses. A repair ignores
                it, because its parent is that of the failed attempt.
            ahead: candidates of the island that were not admitted yet, to show as pending.
            begun: calls of the island that began and were not told.

        Raises:
            ValueError: there is no such island, or nothing was told yet that may be a parent, or
                no candidate of this id.
        """
        choice = self._chooser.choose(iteration, island=island, parent_id=parent_id, begun=begun)
        return self.recall(iteration, island=island, choice=choice, ahead=ahead)

    def recall(
        self, iteration: int, *, island: int, choice: Choice, ahead: tuple[Pending, ...] = ()
    ) -> Proposal:
        """Return the proposal of an island's iteration whose call was recorded.

        It is the same as then, if the same was told as before that call.

        Args:
            iteration: its number.
            island: its number.
            choice: what the call was made for.
            ahead: candidates of the island that it shows and that were not admitted yet.

        Raises:
            ValueError: there is no such island, no candidate or no failed attempt of this id.
        """
        own, population = self._islands.island(island), self._population
        parent = population.candidate(choice.parent)
        history: tuple[Candidate, ...] = ()
        lineage: tuple[Turn, ...] = ()
        failures = self._settings.failures
        if self._prompts.layout == "classic":
            history = best_that_fit(
                [c for c in own.candidates if c.id not in (choice.parent, choice.partner)],
                room=self._prompts.history_tokens,
                size=self._size,
                direction=self._direction,
            )
        elif self._prompts.layout == "stable":
            history = own.shown
        else:
            lineage = population.lineage(parent.id, failures=failures)
        return Proposal(
            iteration=iteration,
            parent=parent,
            history=history,
            operator=choice.operator,
            k=choice.k,
            seed=chance_of(iteration, island=island, seed=self._seed).seed,
            failures=population.failures(
                parent.id, island=island, most=failures, but=choice.repairs
            ),
            lineage=lineage,
            compactions=own.compactions,
            island=island,
            pending=own.pending + ahead if self._prompts.history_tokens else (),
            partner=None if choice.partner is None else population.candidate(choice.partner),
            repairs=None if choice.repairs is None else population.attempt(choice.repairs),
            rule=choice.rule,
        )

    def refusal(self, program: Program | None, *, parent: str) -> Refusal | None:
        """Return why a child would not be worth an evaluation; see `Population.refusal`."""
        return self._population.refusal(program, parent=parent)

    def eligible(self, island: int) -> Roster:
        """Return whom an island's parents are chosen from.

        Raises:
            ValueError: there is no such island.
        """
        return self._islands.island(island).eligible

    def programs(self, island: int) -> list[Candidate | Pending]:
        """Return an island's candidates and its own programs without a verdict.

        Raises:
            ValueError: there is no such island.
        """
        own = self._islands.island(island)
        return [*own.candidates, *own.pending]

    def begin(self, iteration: int, *, island: int, operator: str, repairs: str | None) -> None:
        """Take in that a call is made.

        Args:
            iteration: its number.
            island: that it is made for.
            operator: that it uses.
            repairs: id of the failed attempt that it is to correct, if it is to correct one.

        Raises:
            ValueError: there is no such island.
        """
        self._islands.mix(island).begin(iteration, operator)
        if repairs is not None:
            self._population.begin_repair(repairs)

    def admit(self, entry: Entry) -> None:
        """Take in a program that will be evaluated; admitting it again changes nothing.

        Raises:
            ValueError: there is no such island.
        """
        own = self._islands.island(entry.island)
        if self._population.admit(entry) and entry.iteration != FIRST_ITERATION:
            own.admit(entry)

    def tell(self, candidate_id: str, evaluation: Evaluation, *, cell: Cell | None = None) -> None:
        """Take in the verdict on an admitted program; the first one told counts.

        Args:
            candidate_id: the program's.
            evaluation: the verdict.
            cell: the program's cell in the islands' archives; None for a program without a cell,
                and without archives.

        Raises:
            KeyError: no program was admitted under this id.
        """
        if not self._population.tell(candidate_id, evaluation):
            return
        entry = self._population.entry(candidate_id)
        valid = evaluation.score is not None
        candidate = self._population.candidate(candidate_id) if valid else None
        self._cells[candidate_id] = cell
        if entry.iteration != FIRST_ITERATION:
            self._islands.island(entry.island).tell(entry, candidate)
        elif candidate is not None:
            self._islands.begin_with(entry, candidate)

    def improved(self, island: int, iteration: int) -> int:
        """Return how many children of an iteration improved their island; see `Island.improved`.

        To be asked when all its verdicts were told, and before it is finished.

        Raises:
            ValueError: there is no such island.
        """
        return self._islands.island(island).improved(iteration)

    def finish(self, outcome: IterationOutcome) -> None:
        """Take in that an iteration is over, and what it cost; all its verdicts were told.

        Some candidates may migrate then; see `Archipelago.finish`.

        Raises:
            ValueError: there is no such island, this iteration or a later one of the island was
                finished before, or one of its programs has no verdict.
        """
        told = self._islands.island(outcome.island).finish(outcome)
        share = self._better_than_parent(told) / max(1, outcome.children)
        self._islands.mix(outcome.island).tell(outcome.iteration, share=share)
        self._islands.finish(outcome.island)

    def _new_island(self, island: int) -> Island:
        """Return the island of a number, without a program."""
        direction, prompts, features = self._direction, self._prompts, self._features
        return Island(
            window=Window(
                kept=prompts.history_tokens if prompts.layout == "stable" else 0,
                growth=prompts.growth_tokens,
                size=self._size,
                direction=direction,
            ),
            width=self._width.make(k=self._settings.k, seed=self._seed, island=island),
            parents=self._settings.parent.make(direction=direction),
            direction=direction,
            elites=None
            if features is None
            else Elites(features=features, direction=direction, cells=self._cells),
        )

    def _better_than_parent(self, told: ParentOutcome) -> int:
        """Return how many children have a better score than their parent."""
        score = self._population.candidate(told.parent).score
        return sum(
            each.score is not None and self._direction.better(each.score, than=score)
            for each in told.children
        )
