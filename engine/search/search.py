"""The search's contract with the loop: ask for proposals, tell scores, finish iterations.

The search is a fold over `Search.begin`, `Search.admit`, `Search.tell` and `Search.finish`, in the
order of the run's log, and an ask uses everything that was told before it and changes nothing. All
chance derives from the run's seed, the island and the number of the iteration. So a run that was
killed, and is told its log, asks what it would have asked.

**Islands.** Each has its own candidates, window, width policy and failed attempts. They share the
initial program, and know each other's programs as duplicates. Their best migrate, and further ones
may be opened (``engine.search.archipelago``). The calls of different islands may be told in any
order, as long as each island's own keep theirs: what an ask returns depends on that only through
which migrants have arrived, and when, and what an island that was opened began with. The moment
counts where something is compared with what the island has by then: AdaEvolve counts a guest if it
is the new best on arrival, and whether a child takes over a cell (`Search.taken_over`) depends on
the guests by then.

**Archives.** With ``features`` each island has an archive, and its parents are the elites of that.
What is shown, sent on and known as a duplicate is as without one.

**Common random numbers.** The way to choose a parent and the seed of a proposal do not depend on
the candidates, and the operator, the parent and a crossover's partner depend on them as little as
their distributions allow (``engine.search.race``, ``engine.search.operators``). So a proposal that
is made before the last verdicts are in (`Search.predict`) is mostly the one that is made afterwards
(`Search.verify`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from engine.core import (
    Candidate,
    Direction,
    Evaluation,
    Feature,
    Pending,
    Proposal,
    Refusal,
    Turn,
)
from engine.search.archipelago import Archipelago
from engine.search.choice import Choice, chance_of
from engine.search.chooser import Chooser
from engine.search.features import Cell
from engine.search.operators import make_mix
from engine.search.parents import ParentOutcome, best_of, normalised
from engine.search.policies import island_maker
from engine.search.population import FIRST_ITERATION, Entry, Population
from engine.search.predictor import Expert, Guesses
from engine.search.width import IterationOutcome
from engine.search.window import best_that_fit
from engine.settings import (
    IslandSettings,
    PromptSettings,
    SearchSettings,
    WidthSettings,
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
            islands: how many there are, what they send each other, and when further ones open.
            prompts: how many other programs are to be shown, and for which layout.
            direction: of the scores.
            seed: of all choices.
            size: of a program's text, in the tokens that ``prompts`` counts.
            features: of the islands' archives; None for islands without any.
        """
        self._settings = settings
        self._prompts = prompts
        self._direction = direction
        self._seed = seed
        self._size = size
        self._population = Population()
        self._features = features
        self._cells: dict[str, Cell | None] = {}  # by candidate
        weights = {name: w for name, w in sorted(settings.operators.items()) if w > 0}
        self._islands = Archipelago(
            new_island=island_maker(
                settings=settings,
                width=width,
                prompts=prompts,
                direction=direction,
                seed=seed,
                size=size,
                features=features,
                cells=self._cells,
            ),
            new_mix=partial(make_mix, settings.operators_policy, weights),
            islands=islands,
            direction=direction,
            seed=seed,
            cells=None if features is None else self._cells,
            population=self._population,
        )
        self._chooser = Chooser(
            islands=self._islands,
            population=self._population,
            operators=list(weights),
            direction=direction,
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
        """How many there are now; they are numbered from 0, further ones as they are opened."""
        return len(self._islands)

    def ask(
        self,
        iteration: int,
        *,
        island: int,
        parent_id: str | None = None,
        rule: str = "given",
        ahead: tuple[Pending, ...] = (),
        guesses: Sequence[Proposal] = (),
    ) -> Proposal:
        """Return the proposal of an island's iteration, given everything that was told so far.

        Args:
            iteration: counts from 0, over all islands.
            island: its number.
            parent_id: of the parent to take instead of the one that chance chooses; a repair's
                is not chosen.
            rule: by which that one was chosen.
            ahead: candidates of the island that were not admitted yet, to show as pending.
            guesses: calls of the island that were begun on guesses, of which nothing was told.

        Raises:
            ValueError: there is no such island, or nothing was told yet that may be a parent, or
                no candidate of this id.
        """
        choice = self._chooser.choose(
            iteration, island=island, parent_id=parent_id, rule=rule, guesses=guesses
        )
        return self.recall(iteration, island=island, choice=choice, ahead=ahead)

    def recall(
        self, iteration: int, *, island: int, choice: Choice, ahead: tuple[Pending, ...] = ()
    ) -> Proposal:
        """Return the proposal of an island's iteration whose call was recorded.

        It is the one that was asked for or predicted, if as much was told as was then.

        Args:
            iteration: its number.
            island: its number.
            choice: what the call was made for.
            ahead: candidates of the island that it shows and that were not admitted yet.

        Raises:
            ValueError: there is no such island, no candidate or no failed attempt of this id.
        """
        home, population = self._islands.home(island), self._population
        parent = population.candidate(choice.parent)
        history: tuple[Candidate, ...] = ()
        lineage: tuple[Turn, ...] = ()
        failures = self._settings.failures
        if self._prompts.layout == "classic":
            history = best_that_fit(
                [c for c in home.candidates if c.id not in (choice.parent, choice.partner)],
                room=self._prompts.history_tokens,
                size=self._size,
                direction=self._direction,
            )
        elif self._prompts.layout == "stable":
            history = home.shown
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
            compactions=home.compactions,
            island=island,
            pending=home.pending + ahead if self._prompts.history_tokens else (),
            partner=None if choice.partner is None else population.candidate(choice.partner),
            repairs=None if choice.repairs is None else population.attempt(choice.repairs),
            rule=choice.rule,
        )

    def predict(
        self,
        iteration: int,
        *,
        island: int,
        ahead: tuple[Pending, ...] = (),
        guesses: Sequence[Proposal] = (),
    ) -> Proposal:
        """Return what `ask` is expected to return once the verdicts that are out are in.

        The parent is the predictor's guess, but for a repair. What is shown is what is known now;
        the programs without a verdict are shown as such, and so are those ``ahead``.

        Raises:
            ValueError: as `ask`.
        """
        choice = self._chooser.expect(iteration, island=island, guesses=guesses)
        return self.recall(iteration, island=island, choice=choice, ahead=ahead)

    def verify(self, proposal: Proposal) -> Proposal:
        """Return what `ask` returns now for a predicted proposal's iteration.

        To be called when the iteration before it is finished: the predictor learns which of its
        guesses were right. Verifying again, or what another process predicted, teaches it nothing.
        """
        asked = self.ask(proposal.iteration, island=proposal.island)
        self._chooser.learn(proposal.iteration, island=proposal.island, parent=asked.parent.id)
        return asked

    def predictor_figures(self) -> Mapping[Expert, Guesses]:
        """Return how often each way to guess a parent was right, over all islands."""
        return self._chooser.figures()

    def near(self, proposal: Proposal, *, tolerance: float, most: int) -> list[Candidate]:
        """Return other parents about as good as the proposal's, the latest first.

        Args:
            proposal: of which island, and beside whom.
            tolerance: the largest difference of the scores, as a share of the span from the worst
                to the best.
            most: how many.
        """
        candidates = self._islands.home(proposal.island).eligible
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
        home = self._islands.home(island)
        return [*home.candidates, *home.pending]

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
        """Take a program in whose evaluation follows; admitting it again changes nothing.

        Raises:
            ValueError: there is no such island.
        """
        home = self._islands.home(entry.island)
        if self._population.admit(entry) and entry.iteration != FIRST_ITERATION:
            home.admit(entry)

    def tell(self, candidate_id: str, evaluation: Evaluation, *, cell: Cell | None = None) -> None:
        """Take in the verdict on an admitted program; the first one told counts.

        Args:
            candidate_id: the program's.
            evaluation: the verdict.
            cell: the program's, in the islands' archives; None if it has none, or they none.

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
            self._islands.home(entry.island).tell(entry, candidate)
        elif candidate is not None:
            self._islands.begin_with(entry, candidate)

    def taken_over(self, iteration: int, *, island: int) -> int | None:
        """Return how many children of an iteration took over a cell of the island's archive.

        To be asked when all its verdicts were told, and before it is finished; each child is
        compared with the archive as it was before the iteration (`Elites.taken_over`).

        Returns:
            None without an archive.

        Raises:
            ValueError: there is no such island.
        """
        return self._islands.home(island).taken_over(iteration)

    def finish(self, outcome: IterationOutcome) -> None:
        """Take in that an iteration is over, and what it cost; all its verdicts were told.

        A further island may be opened then, and some candidates migrate; see `Archipelago.finish`.

        Raises:
            ValueError: there is no such island, this iteration or a later one of the island was
                finished before, or one of its programs has no verdict.
        """
        told = self._islands.home(outcome.island).finish(outcome)
        share = self._improved(told) / max(1, outcome.children)
        self._islands.mix(outcome.island).tell(outcome.iteration, share=share)
        self._islands.finish(outcome.island, told)

    def preferred(self, islands: Sequence[int], *, iteration: int) -> int | None:
        """Return which of some islands is to have the room for the next call.

        See `Archipelago.preferred`.
        """
        return self._islands.preferred(islands, iteration=iteration)

    def first_best(self, island: int) -> float | None:
        """Return the best score that an island began with; None if it began with none.

        Raises:
            ValueError: there is no such island.
        """
        return self._islands.home(island).first_best

    def best(self) -> Candidate | None:
        """Return the best candidate, of equal ones the shortest; None before the first."""
        candidates = self._population.candidates()
        return best_of(candidates, self._direction) if candidates else None

    def _improved(self, told: ParentOutcome) -> int:
        """Return how many children have a better score than their parent."""
        score = self._population.candidate(told.parent).score
        return sum(
            each.score is not None and self._direction.better(each.score, than=score)
            for each in told.children
        )
