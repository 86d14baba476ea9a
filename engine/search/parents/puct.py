"""PUCT: TTT-Discover's reuse of states.

Source: Yuksekgonul et al., "Learning to discover at test time", 2026, sections 3.2 and A.2, and its
code. The parent is the candidate s with the largest

    Q(s) + c (Rmax - Rmin) P(s) sqrt(1 + T) / (1 + n(s)),

with Q(s) the best score among its children, or its own as long as no child has one; Rmax and Rmin
the best and the worst score of a candidate that the island did not begin with, or of all as long
as there is no other, as its code has it: an initial program far below the rest would make the
bonus outweigh Q. The initial ones and children that are no candidates may lie outside of the range.
P(s) is linear in the rank, P = (N - rank) / sum with rank = 0 for the best of N. T counts all
expansions, n(s) those of s and its descendants. An expansion is a call, however many children it
has; calls whose children all failed count too. (Its code counts rollouts.)

Q is taken from Rmin, and the formula divided by Rmax - Rmin, which changes no choice, so that a
range that is no finite number does no harm. Where all candidates' scores are equal it is taken to
be above 0, so that the bonus still decides between equal Q (its code has a floor of 1e-6). Equal
scores share the mean of their ranks. Of equal values the better score wins, then the shorter
program, then the first.

The buffer, as its code has it: of the children of a parent, over all its calls, it holds the best
``children``, and of all it holds the best ``buffer``; what the island began with stays always.
Migrants are held as children of nobody. The parent is one of the buffer; where none of the
candidates is in it, as with an archive, one of the candidates.

There is no chance in it, so ``u`` and ``key`` do not matter.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from engine.core import Candidate, Direction
from engine.search.parents import (
    PARENTS,
    Draw,
    Offspring,
    ParentOutcome,
    ParentPolicy,
    ParentSettings,
)
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
        children: of a parent that the buffer holds, the best of them.
        buffer: the most programs that it holds besides the initial ones, the best ones.
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
        self._direction = direction
        self._initial: set[str] = set()  # what the island began with
        self._kept: dict[str, list[Offspring]] = {}  # the best children of each parent
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
        found = np.array([each.id not in self._initial for each in candidates])
        quality = self._quality(candidates, own, span=own[found] if found.any() else own)
        weights = len(candidates) + 1 - ranks(own, self._direction)
        prior = weights / weights.sum()
        calls = np.array([self._calls[c.id] for c in candidates], dtype=np.float64)
        bonus = prior * math.sqrt(1 + self._all_calls) / (1 + calls)
        values: NDArray[np.float64] = quality + self._exploration * bonus
        return values

    def buffered(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """Return those of the buffer; all if there is none."""
        kept = {each.id for children in self._kept.values() for each in children}
        initial = [each for each in candidates if each.id in self._initial]
        others = [
            each
            for each in candidates
            if each.id in kept or not (each.id in self._parents or each.id in self._initial)
        ]
        return [*initial, *best_few(others, self._buffer, self._direction)] or candidates

    def begin_with(self, candidate: Candidate) -> None:
        """Keep a program that the island begins with, whatever becomes of it."""
        self._initial.add(candidate.id)

    def tell(self, outcome: ParentOutcome) -> None:
        """Count a call of a parent and all it descends from, and keep its best child."""
        self._all_calls += 1
        name: str | None = outcome.parent
        while name is not None:
            self._calls[name] += 1
            name = self._parents.get(name)
        scored = [each for each in outcome.children if each.score is not None]
        kept = [*self._kept.get(outcome.parent, ()), *scored]
        kept.sort(key=lambda each: self._direction.key(each.score or 0.0))  # stable
        self._kept[outcome.parent] = kept[: self._children]
        for child in outcome.children:
            self._parents[child.id] = outcome.parent
            best = self._best_child.get(outcome.parent)
            if child.score is not None and (
                best is None or self._direction.better(child.score, best)
            ):
                self._best_child[outcome.parent] = child.score

    def _quality(
        self,
        candidates: Sequence[Candidate],
        own: NDArray[np.float64],
        *,
        span: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return (Q - Rmin) / (Rmax - Rmin) of each candidate, shape as ``own``.

        It is outside of [0, 1] where Q is that of an initial program, or of a child that is no
        candidate.

        Args:
            candidates: at least one.
            own: their scores.
            span: the scores that Rmin and Rmax are those of, at least one.
        """
        reached = np.array([self._best_child.get(c.id, c.score) for c in candidates])
        unit = max(1.0, float(np.abs(own).max()), float(np.abs(reached).max()))
        span, reached = span / unit, reached / unit  # or a difference could be infinite
        if self._direction is Direction.MINIMISE:
            span, reached = -span, -reached
        with np.errstate(over="ignore"):  # a score as far outside of a narrow range as can be
            quality: NDArray[np.float64] = (reached - span.min()) / (np.ptp(span) or LEAST_RANGE)
        return quality
