"""An island: a population that evolves by itself, except for what its neighbours send it.

What an island knows is a fold over `admit`, `tell`, `receive` and `finish`. Its candidates stand in
the order of their iterations and of the children in them. Its window and its policies for parents
and width advance only when an iteration is over. So neither the order in which siblings finish nor
what other islands do meanwhile matters.

With an archive (``archive``) parents are chosen among its elites, which may be migrants. All else
is as without one.

A migrant is a program that the island began with, or one that another island sent. It may become a
parent like any other candidate. A migrant that was sent does not join the window, which shows what
the island began with and what its own iterations brought. No migrant is sent on. So an island's
window and what it sends do not depend on when migrants arrive, and a good program does not run
round the islands by itself.

Covers: one island. Does not cover who sends what to whom (``engine.search.archipelago``), or what
is asked for (``engine.search.search``).
"""

from __future__ import annotations

import bisect

from engine.core import Candidate, Direction, Pending
from engine.search.archive import Elites
from engine.search.parents import Draw, Offspring, ParentOutcome, ParentPolicy, rank
from engine.search.population import Entry
from engine.search.roster import Place, Roster
from engine.search.widths import IterationOutcome, WidthPolicy
from engine.search.window import Window


class Island:
    """The candidates of an island, who of them is changed, and what is shown of them."""

    def __init__(
        self,
        *,
        window: Window,
        width: WidthPolicy,
        parents: ParentPolicy,
        direction: Direction,
        elites: Elites | None = None,
    ) -> None:
        """Start empty.

        Args:
            window: without a program.
            width: told nothing.
            parents: told nothing.
            direction: of the scores.
            elites: without a program; None for an island without an archive.
        """
        self._window = window
        self._width = width
        self._parents = parents
        self._direction = direction
        self._elites = elites
        self._candidates = Roster()
        self._own: list[tuple[tuple[float, int], Place, Candidate]] = []  # the best first
        self._received: set[str] = set()
        self._pending: list[tuple[Place, Pending]] = []
        self._told: dict[int, list[tuple[Place, Offspring]]] = {}  # of iterations that go on
        self._last = -1  # the last finished iteration
        self._best: float | None = None  # that it began with or made, without the open iterations
        self.finished = 0
        """Iterations that are over."""

    @property
    def candidates(self) -> Roster:
        """The programs with a score, migrants included, in the order of their places."""
        return self._candidates

    @property
    def eligible(self) -> Roster:
        """Whom a parent may be chosen from, in the order of their places."""
        return self.candidates if self._elites is None else self._elites.candidates

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The island's own programs without a verdict, in the order of their places."""
        return tuple(pending for _, pending in self._pending)

    @property
    def shown(self) -> tuple[Candidate, ...]:
        """The window's programs."""
        return self._window.shown

    @property
    def compactions(self) -> int:
        """How often the window was compacted."""
        return self._window.compactions

    def choose(self, *, u: float, key: int, but: str | None = None) -> Draw:
        """Choose the candidate to change next; see `ParentPolicy.choose`.

        Args:
            u: of the choice.
            key: of the choice.
            but: id of one that is not to be chosen.
        """
        eligible = self.eligible if but is None else self.eligible.without(but)
        return self._parents.choose(eligible, u=u, key=key)

    def k(self, *, iteration: int) -> int:
        """Return how many children an iteration is to have."""
        return self._width.k(iteration=iteration)

    def admit(self, entry: Entry) -> None:
        """Take in one of the island's own children, once; its verdict follows."""
        waiting = Pending(id=entry.id, program=entry.program.text)
        bisect.insort(self._pending, (entry.place, waiting), key=_place)

    def tell(self, entry: Entry, candidate: Candidate | None) -> None:
        """Take in the verdict on an admitted child, once; None if it has no score."""
        self._pending = [each for each in self._pending if each[1].id != entry.id]
        child = Offspring(id=entry.id, score=None if candidate is None else candidate.score)
        told = self._told.setdefault(entry.iteration, [])
        bisect.insort(told, (entry.place, child), key=_place)
        if candidate is not None:
            self._candidates.add(entry.place, candidate)
            ranked = (rank(candidate, self._direction), entry.place, candidate)
            bisect.insort(self._own, ranked, key=lambda each: each[:2])
            if self._elites is not None:
                self._elites.tell(entry.place, candidate)

    def begin_with(self, entry: Entry, candidate: Candidate) -> None:
        """Take in a program that the island begins with; it joins the window."""
        self.receive(entry, candidate)
        self._window.advance([candidate])
        self._note_best(candidate.score)

    def receive(self, entry: Entry, candidate: Candidate) -> None:
        """Take in a migrant; one that is here already changes nothing."""
        if candidate.id not in self._received:
            self._received.add(candidate.id)
            self._parents.receive(candidate)
            self._candidates.add(entry.place, candidate)
            if self._elites is not None:
                self._elites.receive(entry.place, candidate)

    def improved(self, iteration: int) -> int:
        """Return how many children of an iteration that is not finished improved the island.

        To TurboEvolve (section 3.2) these are the ones that replaced a cell of its archive
        (`Elites.taken_over`). Without an archive they are the ones that beat the best program that
        the island began with or made before the iteration; what another island sent is no bar.
        """
        if self._elites is not None:
            return self._elites.taken_over(iteration)
        return sum(self._is_best(child.score) for _, child in self._told.get(iteration, ()))

    def finish(self, outcome: IterationOutcome) -> ParentOutcome:
        """Close an iteration: its children join the window, and the policies learn from it.

        Returns:
            What became of its parent.

        Raises:
            ValueError: this iteration or a later one was finished before, or one of its programs
                has no verdict.
        """
        last = outcome.iteration
        if last <= self._last:
            raise ValueError(f"iteration {last} was told after iteration {self._last}")
        waiting = [each.id for place, each in self._pending if place[0] == last]
        if waiting:
            raise ValueError(f"iteration {last} is not over: {waiting[0]} has no verdict")
        self._last = last
        self.finished += 1
        self._window.advance(self._candidates.of_iteration(last))
        if self._elites is not None:
            self._elites.finish(last)
        self._width.tell(outcome)
        children = tuple(child for _, child in self._told.pop(last, ()))
        for child in children:
            self._note_best(child.score)
        told = ParentOutcome(iteration=last, parent=outcome.parent, children=children)
        self._parents.tell(told)
        return told

    def migrants(self, most: int) -> list[Candidate]:
        """Return the best of the island's own candidates; of equal ones the shorter, the first."""
        return [candidate for *_, candidate in self._own[:most]]

    def _is_best(self, score: float | None) -> bool:
        if score is None or self._best is None:
            return score is not None
        return self._direction.better(score, than=self._best)

    def _note_best(self, score: float | None) -> None:
        if self._is_best(score):
            self._best = score


def _place(placed: tuple[Place, object]) -> Place:
    return placed[0]
