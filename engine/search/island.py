"""An island: a population that evolves by itself, but for what its neighbour sends it.

What an island knows is a fold over `admit`, `tell`, `welcome` and `finish`. Its candidates stand in
the order of their iterations and of the children in them, and its window and its policies for
parents and width advance only when an iteration is over, so it does not matter in which order
siblings finish, or what other islands do meanwhile.

With an archive (``elites``) its parents are chosen among the elites, the guests among them; all
else is as without one.

A guest, which is a program that the island began with or one that another island sent, may become
a parent as any other candidate may. One that was sent does not join the window, which is the record
of what the island began with and of its own iterations; none is sent on: what an island sends is
its own. So an island's window and what it sends do not depend on when its guests arrived, and a
good program does not run round the ring by itself.

Covers: one island. Does not cover who sends what to whom (``engine.search.archipelago``), or what
is asked for (``engine.search.search``).
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Sequence

from engine.core import Candidate, Direction, Pending
from engine.search.elites import Elites
from engine.search.order import in_order
from engine.search.parents import Child, Draw, ParentOutcome, ParentPolicy, rank
from engine.search.population import Entry, Place
from engine.search.width import IterationOutcome, WidthPolicy
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
        self._candidates: list[tuple[Place, Candidate]] = []
        self._guests: set[str] = set()
        self._pending: list[tuple[Place, Pending]] = []
        self._told: dict[int, list[tuple[Place, Child]]] = {}  # by iteration, until that is over
        self._last = -1  # the last finished iteration
        self._last_parent: tuple[Place, str] | None = None
        self.first_best: float | None = None
        """The best score that it began with; None if it began with none."""
        self.finished = 0
        """Iterations that are over."""

    @property
    def candidates(self) -> list[Candidate]:
        """The programs with a score, guests included, in the order of their places."""
        return [candidate for _, candidate in self._candidates]

    @property
    def eligible(self) -> list[Candidate]:
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

    @property
    def last_parent(self) -> str | None:
        """Id of the parent of the last iteration of which a child was admitted."""
        return self._last_parent[1] if self._last_parent is not None else None

    def choose(self, *, u: float, key: int, but: str | None = None) -> Draw:
        """Choose the candidate to change next; see `ParentPolicy.choose`.

        Args:
            u: of the choice.
            key: of the choice.
            but: id of one that is not to be chosen.
        """
        eligible = [each for each in self.eligible if each.id != but]
        return self._parents.choose(eligible, u=u, key=key)

    def k(self, *, iteration: int) -> int:
        """Return how many children an iteration is to have."""
        return self._width.k(iteration=iteration)

    def admit(self, entry: Entry) -> None:
        """Take in one of the island's own children, once; its verdict follows."""
        waiting = Pending(id=entry.id, program=entry.program)
        bisect.insort(self._pending, (entry.place, waiting), key=_place)
        if entry.parent is not None:
            made = (entry.place, entry.parent)
            self._last_parent = max(made, self._last_parent or made)

    def tell(self, entry: Entry, candidate: Candidate | None) -> None:
        """Take in the verdict on an admitted child, once; None if it has no score."""
        self._pending = [each for each in self._pending if each[1].id != entry.id]
        child = Child(id=entry.id, score=None if candidate is None else candidate.score)
        told = self._told.setdefault(entry.iteration, [])
        bisect.insort(told, (entry.place, child), key=_place)
        if candidate is not None:
            bisect.insort(self._candidates, (entry.place, candidate), key=_place)
            if self._elites is not None:
                self._elites.tell(entry.place, candidate)

    def begin_with(self, entry: Entry, candidate: Candidate) -> None:
        """Take in a program that the island begins with; it joins the window."""
        self.welcome(entry, candidate)
        self._window.advance([candidate])
        best = self.first_best
        if best is None or self._direction.better(candidate.score, than=best):
            self.first_best = candidate.score

    def welcome(self, entry: Entry, candidate: Candidate) -> None:
        """Take in a guest; one that is here already changes nothing."""
        if candidate.id not in self._guests:
            self._guests.add(candidate.id)
            self._parents.welcome(candidate)
            bisect.insort(self._candidates, (entry.place, candidate), key=_place)
            if self._elites is not None:
                self._elites.welcome(entry.place, candidate)

    def taken_over(self, iteration: int) -> int | None:
        """Return `Elites.taken_over`; None without an archive."""
        return None if self._elites is None else self._elites.taken_over(iteration)

    def finish(self, outcome: IterationOutcome) -> ParentOutcome:
        """Close an iteration: its children join the window, and the policies learn from it.

        Returns:
            What became of its parent.

        Raises:
            ValueError: this iteration or a later one was finished before, or one of its programs
                has no verdict.
        """
        last = in_order(outcome.iteration, after=self._last)
        waiting = [each.id for place, each in self._pending if place[0] == last]
        if waiting:
            raise ValueError(f"iteration {last} is not over: {waiting[0]} has no verdict")
        self._last = last
        self.finished += 1
        self._window.advance(self._of_iteration(last))
        if self._elites is not None:
            self._elites.finish(last)
        self._width.tell(outcome)
        children = tuple(child for _, child in self._told.pop(last, ()))
        told = ParentOutcome(iteration=last, parent=outcome.parent, children=children)
        self._parents.tell(told)
        return told

    def migrants(self, most: int) -> list[Candidate]:
        """Return the best of the island's own candidates; of equal ones the shorter, the first."""
        own = (each for each in self.candidates if each.id not in self._guests)
        return heapq.nsmallest(most, own, key=lambda each: rank(each, self._direction))

    def _of_iteration(self, iteration: int) -> Sequence[Candidate]:
        first, end = (
            bisect.bisect_left(self._candidates, number, key=lambda each: each[0][0])
            for number in (iteration, iteration + 1)
        )
        return [candidate for _, candidate in self._candidates[first:end]]


def _place(placed: tuple[Place, object]) -> Place:
    return placed[0]
