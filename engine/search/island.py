"""An island: a population that evolves by itself, except for what its neighbours send it.

What an island knows is a fold over `admit`, `tell`, `receive` and `finish`. Its candidates stand in
the order of their iterations and of the children in them. Its window and its policies for parents
and width advance only when an iteration is over. So neither the order in which siblings finish nor
what other islands do meanwhile matters.

With an archive (``archive``) parents are chosen among its elites, which may be migrants, unless the
policy asks for any program. All else is as without one.

A migrant is a program that the island began with, or one that another island sent. It may become a
parent like any other candidate. A migrant that was sent does not join the window, which shows what
the island began with and what its own iterations brought. No migrant is sent on. So an island's
window and what it sends do not depend on when migrants arrive, and a good program does not run
round the islands by itself.

Covers: one island. Does not cover who sends what to whom (``archipelago.py``), or what is asked
for: ``chooser.py``.
"""

import bisect
import operator
from collections import defaultdict
from dataclasses import dataclass, field

from engine.core import Candidate, Child, Direction, Pending, Place
from engine.search.archive import Elites
from engine.search.parents import Draw, Offspring, ParentOutcome, ParentPolicy
from engine.search.roster import Roster, rank
from engine.search.widths import IterationOutcome, WidthPolicy
from engine.search.window import Window

_place = operator.attrgetter("place")


@dataclass(kw_only=True)
class Island:
    """The candidates of an island, who of them is changed, and what is shown of them.

    Attributes:
        window: what is shown.
        width: says how many children an iteration is to have.
        parents: chooses whom to change.
        direction: of the scores.
        elites: None for an island without an archive.
        candidates: the programs with a score, migrants included, in the order of their places.
        finished: how many iterations are over.
    """

    window: Window
    width: WidthPolicy
    parents: ParentPolicy
    direction: Direction
    elites: Elites | None = None
    candidates: Roster = field(default_factory=Roster, init=False)
    finished: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._own: list[tuple[float, int, Place, Candidate]] = []  # the best first
        self._received: set[str] = set()
        self._waiting: dict[str, Child] = {}  # for a verdict
        self._told: defaultdict[int, list[tuple[Child, Offspring]]] = defaultdict(list)
        self._last = -1  # the last finished iteration
        self._best: float | None = None  # that it began with or made, without the open iterations

    @property
    def eligible(self) -> Roster:
        """Whom a parent may be chosen from, in the order of their places."""
        return self.candidates if self.elites is None else self.elites.candidates

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The island's own programs without a verdict, in the order of their places."""
        children = sorted(self._waiting.values(), key=_place)
        return tuple(Pending(id=c.id, program=c.program.text) for c in children if c.program)

    def choose(self, *, u: float, key: int, but: str | None = None) -> Draw:
        """Choose the candidate to change next; see `ParentPolicy.choose`.

        Args:
            u: of the choice.
            key: of the choice.
            but: id of one that is not to be chosen.
        """
        among = self.candidates if self.parents.takes_any(u=u) else self.eligible
        return self.parents.choose(among if but is None else among.without(but), u=u, key=key)

    def admit(self, child: Child) -> None:
        """Take in one of the island's own children, once; its verdict follows."""
        self._waiting[child.id] = child

    def tell(self, child: Child, candidate: Candidate | None) -> None:
        """Take in the verdict on an admitted child, once; None if it has no score."""
        self._waiting.pop(child.id, None)
        score = None if candidate is None else candidate.score
        self._told[child.iteration].append((child, Offspring(id=child.id, score=score)))
        if candidate is not None:
            self.candidates.add(candidate)
            # No two places are equal, so no candidates are compared.
            key = (*rank(candidate, self.direction), candidate.place, candidate)
            bisect.insort(self._own, key)
            if self.elites is not None:
                self.elites.tell(candidate)

    def begin_with(self, candidate: Candidate) -> None:
        """Take in a program that the island begins with; it joins the window."""
        if self._take_in(candidate):
            self.parents.begin_with(candidate)
        self.window.advance([candidate])
        self._note_best(candidate.score)

    def receive(self, candidate: Candidate) -> None:
        """Take in a migrant; one that is here already changes nothing."""
        if self._take_in(candidate):
            self.parents.receive(candidate)

    def _take_in(self, candidate: Candidate) -> bool:
        """Take in what no call made, once; return whether it was not here."""
        if candidate.id in self._received:
            return False
        self._received.add(candidate.id)
        self.candidates.add(candidate)
        if self.elites is not None:
            self.elites.receive(candidate)
        return True

    def improved(self, iteration: int) -> int:
        """Return how many children of an iteration that is not finished improved the island.

        To TurboEvolve (section 3.2) these are the ones that replaced a cell of its archive
        (`Elites.replaced`). The section has both "cell replacement" and "update events"; by the
        first, which is taken here, a child that fills an empty cell is none of them. Without an
        archive they are the ones that beat the best program that the island began with or made
        before the iteration; what another island sent is no bar.
        """
        if self.elites is not None:
            return self.elites.replaced(iteration)
        return sum(self._is_best(told.score) for _, told in self._told.get(iteration, ()))

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
        waiting = [each.id for each in self._waiting.values() if each.iteration == last]
        if waiting:
            raise ValueError(f"iteration {last} is not over: {waiting[0]} has no verdict")
        self._last = last
        self.finished += 1
        self.window.advance(self.candidates.of_iteration(last))
        if self.elites is not None:
            self.elites.finish(last)
        self.width.tell(outcome)
        told = sorted(self._told.pop(last, ()), key=lambda each: each[0].place)
        children = tuple(each for _, each in told)
        for child in children:
            self._note_best(child.score)
        of_parent = ParentOutcome(iteration=last, parent=outcome.parent, children=children)
        self.parents.tell(of_parent)
        return of_parent

    def migrants(self, most: int) -> list[Candidate]:
        """Return the best of the island's own candidates; of equal ones the shorter, the first."""
        return [candidate for *_, candidate in self._own[:most]]

    def _is_best(self, score: float | None) -> bool:
        if score is None or self._best is None:
            return score is not None
        return self.direction.better(score, than=self._best)

    def _note_best(self, score: float | None) -> None:
        if self._is_best(score):
            self._best = score
