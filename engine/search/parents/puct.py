"""PUCT: TTT-Discover's reuse of states.

Source: Yuksekgonul et al., "Learning to discover at test time", 2026, section 3.2, and its code.
The parent is the candidate s with the largest

    Q(s) + c (Rmax - Rmin) P(s) sqrt(1 + T / G) / (1 + n(s) / G),

with Q(s) the best score among its children, or its own as long as no child has one; Rmax and Rmin
the best and the worst score of a candidate, which those of children that are no candidates may lie
outside of; P(s) linear in the rank, P = (N - rank) / sum with rank = 0 for the best of N; G the
children of a call; T all children, and n(s) those of s and its descendants. T / G and n / G are
numbers of calls. Here calls are counted, as the last version of its code does, so that G may change
from call to call; calls whose children all failed count too.

Q is taken from Rmin, and the formula divided by Rmax - Rmin, which changes no choice, so that a
range that is no finite number does no harm. Where all candidates' scores are equal it is taken to
be above 0, so that the bonus still decides between equal Q (its code has a floor of 1e-6). Equal
scores share the mean of their ranks. Of equal values the better score wins, then the shorter
program, then the first.

The buffer, as its code has it: of the children of a call the best ``children`` enter it, and of all
that entered the best ``buffer`` stay; programs that are no child of the island's own, as the
initial one, stay always. The parent is one of the buffer; where none of the candidates is in it, as
with an archive, one of the candidates.

There is no chance in it, so ``u`` and ``key`` do not matter.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from engine.core import Candidate, Direction
from engine.search.parents import PARENTS, Draw, ParentOutcome, ParentPolicy, ParentSettings
from engine.search.roster import best_few, best_of, ranks, scores_of
from engine.section import Count, Number, section

LEAST_RANGE = 1e-6
"""Rmax - Rmin where all candidates have the same score."""


@PARENTS.register("puct")
@section
class PuctSettings(ParentSettings):
    """How much the seldom tried count.

    Attributes:
        exploration: c, 0 or more.
        children: of a call that enter the buffer, the best of them.
        buffer: the most of them that it holds, the best ones.
    """

    exploration: Number = Field(default=1.0, ge=0)
    children: Count = 2
    buffer: Count = 1000

    def make(self, *, direction: Direction) -> "Puct":
        """Return the policy of an island, with no call counted."""
        return Puct(self, direction=direction)


class Puct(ParentPolicy):
    """The candidate with the best child or the least tried lineage.

    A migrant's calls on other islands are none of this one's.
    """

    def __init__(self, settings: PuctSettings, *, direction: Direction) -> None:
        """``direction``: of the scores."""
        self._exploration = settings.exploration
        self._children = settings.children
        self._buffer = settings.buffer
        self._entered: set[str] = set()
        self._direction = direction
        self._parents: dict[str, str] = {}  # of the children that were told
        self._calls: Counter[str] = Counter()  # n / G
        self._all_calls = 0  # T / G
        self._best_child: dict[str, float] = {}

    def choose(self, candidates: Sequence[Candidate], *, u: float, key: int) -> Draw:
        """Choose one of ``candidates``, at least one; the numbers do not matter."""
        candidates = self.buffered(candidates)
        values = self.values(candidates)
        best = np.flatnonzero(values == values.max())
        best_one = best_of([candidates[place] for place in best], self._direction)
        return Draw(candidate=best_one, rule="puct")

    def values(self, candidates: Sequence[Candidate]) -> NDArray[np.float64]:
        """Return the formula, from Rmin and over Rmax - Rmin, shape (len(candidates),)."""
        own = scores_of(candidates)
        quality = self._quality(candidates, own)
        weights = len(candidates) + 1 - ranks(own, self._direction)
        prior = weights / weights.sum()
        calls = np.array([self._calls[c.id] for c in candidates], dtype=np.float64)
        bonus = prior * math.sqrt(1 + self._all_calls) / (1 + calls)
        values: NDArray[np.float64] = quality + self._exploration * bonus
        return values

    def buffered(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """Return those of the buffer; all if there is none."""
        entered = [each for each in candidates if each.id in self._entered]
        others = [each for each in candidates if each.id not in self._parents]
        kept = best_few(entered, self._buffer, self._direction)
        return [*others, *kept] or candidates

    def tell(self, outcome: ParentOutcome) -> None:
        """Count a call of a parent and all it descends from, and keep its best child."""
        self._all_calls += 1
        name: str | None = outcome.parent
        while name is not None:
            self._calls[name] += 1
            name = self._parents.get(name)
        scored = [each for each in outcome.children if each.score is not None]
        scored.sort(key=lambda each: self._direction.key(each.score or 0.0))  # stable
        self._entered |= {each.id for each in scored[: self._children]}
        for child in outcome.children:
            self._parents[child.id] = outcome.parent
            best = self._best_child.get(outcome.parent)
            if child.score is not None and (
                best is None or self._direction.better(child.score, best)
            ):
                self._best_child[outcome.parent] = child.score

    def _quality(
        self, candidates: Sequence[Candidate], own: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return (Q - Rmin) / (Rmax - Rmin) of each candidate; ``own`` and it have the same shape.

        It is outside of [0, 1] where Q is that of a child that is no candidate.
        """
        reached = np.array([self._best_child.get(c.id, c.score) for c in candidates])
        unit = max(1.0, float(np.abs(own).max()), float(np.abs(reached).max()))
        own, reached = own / unit, reached / unit  # or a difference could be infinite
        if self._direction is Direction.MINIMISE:
            own, reached = -own, -reached
        with np.errstate(over="ignore"):  # a child as far outside of a narrow range as can be
            quality: NDArray[np.float64] = (reached - own.min()) / (np.ptp(own) or LEAST_RANGE)
        return quality
