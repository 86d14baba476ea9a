"""The search's contract with the loop: ask for proposals, tell scores, finish iterations.

The search is a fold over `Search.begin_with`, `Search.begin`, `Search.admit`, `Search.tell`,
`Search.heed` and `Search.finish`, in the order of the run's log. An ask uses everything that was
told before it and changes nothing. All chance derives from the run's seed, the island and the
number of the iteration. So a run that was killed and is told its log asks for the same proposals
again.

**Islands.** Each has its own candidates, window, width policy and failed attempts. They share the
initial program, and know each other's programs as duplicates. Their best migrate. The calls of one
island have to be told in their order; those of different islands may mix. What an ask returns
depends on the mixing only through the migrants that have arrived, and when: AdaEvolve counts a
migrant if it is the island's best on arrival, and whether a child replaces an elite
(`Search.improved`) depends on the migrants that are there.

**Archives.** With ``features`` each island has an archive, whose elites its parents are. What is
shown, what migrates and what is a duplicate stay as without an archive, unless inspirations are set
(``search.inspirations``): those are elites.

Does not cover how a call's operator, parent and width are chosen (``chooser.py``), what it shows
(``context.py``), or what an island is made of: ``archipelago.py``.
"""

from collections.abc import Callable, Collection, Sequence

from engine.core import (
    Call,
    Candidate,
    Cell,
    Child,
    Direction,
    Evaluation,
    Feature,
    Hint,
    Pending,
    Program,
    Proposal,
    Refusal,
    Tactics,
)
from engine.search.archipelago import Archipelago
from engine.search.choice import Choice, chance_of
from engine.search.chooser import Chooser
from engine.search.context import Context
from engine.search.population import Population
from engine.search.tactics import Tactician
from engine.search.widths import IterationOutcome, WidthSettings
from engine.settings import IslandSettings, PromptSettings, SearchSettings


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
        tactician: Tactician | None = None,
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
            tactician: says when the model is asked what to try; None for never.
        """
        self._failures = settings.failures
        self._shows_pending = prompts.shows_pending
        self.direction = direction
        self._seed = seed
        self.features = features
        self._hint = ""
        self._population = Population()
        weights = {name: w for name, w in sorted(settings.operators.items()) if w > 0}
        self._islands = Archipelago(
            islands,
            search=settings,
            width=width,
            prompts=prompts,
            weights=weights,
            direction=direction,
            seed=seed,
            size=size,
            has_archives=features is not None,
        )
        self._context = Context(settings, prompts=prompts, direction=direction, size=size)
        self._tactician = tactician
        self._chooser = Chooser(
            operators=[*weights],
            islands=self._islands,
            population=self._population,
            tactician=tactician,
            seed=seed,
        )

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
        self, iteration: int, *, island: int, choice: Choice | Call, ahead: tuple[Pending, ...] = ()
    ) -> Proposal:
        """Return the proposal of an island's iteration whose call was recorded.

        It is the same as then, if the same was told as before that call.

        Args:
            iteration: its number.
            island: its number.
            choice: what the call was made for; the recorded call says it.
            ahead: candidates of the island that it shows and that were not admitted yet.

        Raises:
            ValueError: there is no such island, no candidate or no failed attempt of this id.
        """
        own, population = self._islands[island], self._population
        parent = population.candidate(choice.parent)
        chance = chance_of(iteration, island=island, seed=self._seed)
        return Proposal(
            iteration=iteration,
            parent=parent,
            history=self._context.history(choice, own, chance),
            operator=choice.operator,
            k=choice.k,
            seed=chance.seed,
            failures=population.failures(
                parent.id, island=island, most=self._failures, but=choice.repairs
            ),
            lineage=self._context.lineage(choice, population),
            compactions=own.window.compactions,
            island=island,
            pending=own.pending + ahead if self._shows_pending else (),
            partner=None if choice.partner is None else population.candidate(choice.partner),
            repairs=None if choice.repairs is None else population.attempt(choice.repairs),
            rule=choice.rule,
            hint=self._hint,
            tactics="" if self._tactician is None else self._tactician.idea_for(choice.operator),
        )

    def refusal(self, program: Program | None, *, parent: str) -> Refusal | None:
        """Return why a child would not be worth an evaluation; see `Population.refusal`."""
        return self._population.refusal(program, parent=parent)

    def programs(self, island: int) -> list[Candidate | Pending]:
        """Return an island's candidates and its own programs without a verdict.

        Raises:
            ValueError: there is no such island.
        """
        own = self._islands[island]
        return [*own.candidates, *own.pending]

    def begin_with(
        self,
        name: str,
        program: Program,
        *,
        score: float | None,
        index: int = 0,
        islands: Collection[int] | None = None,
        cell: Cell | None = None,
    ) -> None:
        """Take in a program that the run begins with, and its score; see `Population.begin_with`.

        Args:
            name: its id.
            program: the program.
            score: None if its evaluation gave none; then no island begins with it.
            index: its place among those that the run begins with.
            islands: that begin with it; None for all.
            cell: its own in the islands' archives; None if it has none, and without archives.
        """
        first = self._population.begin_with(name, program, score=score, index=index, cell=cell)
        if self._tactician is not None:
            self._tactician.begin_with(score)
        if first is not None:
            self._islands.begin_with(first, islands=islands)

    def heed(self, hint: Hint) -> None:
        """Have proposals carry a hint, in place of the last one; it decides nothing here."""
        self._hint = hint.text

    def expect(self, name: str, program: Program) -> None:
        """Take in that a program was made elsewhere, and that nobody waits for its verdict.

        A child that is the same is no duplicate, or it could be lost for a verdict that never
        comes, or says nothing. Once it is admitted, `known_as` returns the child.
        """
        self._population.expect(name, program)

    def know(self, name: str, program: Program) -> None:
        """Take in that a program was judged elsewhere: a child that is the same is a duplicate."""
        self._population.know(name, program)

    def is_duplicate(self, program: Program) -> bool:
        """Whether one that is the same was admitted or judged: one that is expected was not."""
        return self._population.is_duplicate(program)

    def known_as(self, program: Program) -> str | None:
        """Return the id of the first program that is the same; None if no island knows one.

        It is the same however much was told later, unless a child takes the place of one that was
        only expected. Its verdict may not be in.
        """
        return self._population.known_as(program)

    def join(
        self,
        name: str,
        program: Program,
        *,
        score: float,
        index: int,
        island: int,
        cell: Cell | None = None,
    ) -> None:
        """Take in a program that no call made; on its island it is what a migrant is.

        Args:
            name: its id.
            program: the program.
            score: its own.
            index: its place among those that no call made.
            island: that it joins.
            cell: its own in the island's archive; None if it has none.

        Raises:
            ValueError: there is no such island.
        """
        self._islands[island]  # an error, before anything is taken in
        joined = self._population.begin_with(name, program, score=score, index=index, cell=cell)
        if self._tactician is not None:
            self._tactician.begin_with(score)  # no child, but children have to be better
        if joined is not None:
            self._islands.receive(island, joined)

    def best(self, island: int, *, most: int) -> list[Candidate]:
        """Return whom a parent on an island may be chosen from, the best first.

        Raises:
            ValueError: there is no such island.
        """
        return self._islands[island].eligible.first(most, self.direction)

    def migrants(self, island: int, *, most: int) -> list[Candidate]:
        """Return the best programs that an island found itself, the best first.

        Raises:
            ValueError: there is no such island.
        """
        return self._islands[island].migrants(most)

    @property
    def wants_tactics(self) -> bool:
        """Whether the model is to be asked what to try."""
        return self._tactician is not None and self._tactician.is_due

    @property
    def tried(self) -> Sequence[str]:
        """The last ideas that the model had."""
        return () if self._tactician is None else tuple(self._tactician.tried)

    def best_of_all(self, count: int) -> list[Candidate]:
        """Return the best programs of all islands, the best first."""
        return self._islands.best(count)

    def advise(self, tactics: Tactics) -> None:
        """Take in what the model said that should be tried."""
        if self._tactician is not None:
            self._tactician.take(tactics.ideas)

    def begin(self, call: Call) -> None:
        """Take in that a call is made.

        Raises:
            ValueError: there is no such island.
        """
        self._islands.mix(call.island).begin(call.iteration, call.operator)
        if self._tactician is not None:
            self._tactician.begin(call.operator)
        if call.repairs is not None:
            self._population.begin_repair(call.repairs)

    def admit(self, child: Child, call: Call) -> None:
        """Take in a child of ``call`` that will be evaluated; again, it changes nothing.

        Raises:
            ValueError: there is no such island.
        """
        own = self._islands[call.island]
        if self._population.admit(child, call):
            own.admit(child)

    def tell(self, candidate_id: str, evaluation: Evaluation, *, cell: Cell | None = None) -> None:
        """Take in the verdict on an admitted child; the first one told counts.

        Args:
            candidate_id: the child's.
            evaluation: the verdict.
            cell: the program's cell in the islands' archives; None for a program without a cell,
                and without archives.

        Raises:
            KeyError: no child was admitted under this id.
        """
        child = self._population.awaited(candidate_id)
        if child is not None:
            if self._tactician is not None:
                self._tactician.judge(evaluation.score)
            candidate = self._population.tell(candidate_id, evaluation, cell=cell)
            self._islands[self._population.island_of(child)].tell(child, candidate)

    def improved(self, island: int, iteration: int) -> int:
        """Return how many children of an iteration improved their island; see `Island.improved`.

        To be asked when all its verdicts were told, and before it is finished.

        Raises:
            ValueError: there is no such island.
        """
        return self._islands[island].improved(iteration)

    def finish(self, outcome: IterationOutcome) -> None:
        """Take in that an iteration is over, and what it cost; all its verdicts were told.

        Every ``migrate_every`` iterations of an island the best of its own programs become
        candidates of its neighbours too, which the topology names. So no event has to record a
        migrant.

        Raises:
            ValueError: there is no such island, this iteration or a later one of the island was
                finished before, or one of its programs has no verdict.
        """
        told = self._islands.finish(outcome)
        score = self._population.candidate(told.parent).score
        better = sum(
            each.score is not None and self.direction.better(each.score, than=score)
            for each in told.children
        )
        share = better / max(1, outcome.children)
        self._islands.mix(outcome.island).tell(outcome.iteration, share=share)

    def scheduled(self, free: Sequence[int]) -> Sequence[int]:
        """Return which of the islands that have no call under way may call now."""
        return self._islands.scheduled(free)
