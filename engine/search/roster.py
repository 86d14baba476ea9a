"""A roster: candidates in the order of their places, and what draws among them need as arrays.

A draw looks at every candidate. Over Python objects that takes milliseconds once there are ten
thousand of them; over arrays that grow with the island it takes a fraction of one.

Covers: keeping the arrays, and making scores comparable: order, scaling and ranks, for either
direction and any size or sign. Does not cover who is drawn: ``parents``, ``race``.
"""

import bisect
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from engine.core import Candidate, Direction
from engine.search import race

_FIRST_ROOM = 64  # candidates


class Roster(Sequence[Candidate]):
    """Candidates that a choice is made among; only who keeps it may add to it."""

    def __init__(self, candidates: Iterable[Candidate] = ()) -> None:
        """Begin with some candidates, in any order."""
        self._candidates: list[Candidate] = []
        self._scores: NDArray[np.float64] = np.empty(_FIRST_ROOM, dtype=np.float64)
        self._hashes: NDArray[np.uint64] = np.empty(_FIRST_ROOM, dtype=np.uint64)
        for candidate in candidates:
            self.add(candidate)

    def add(self, candidate: Candidate) -> None:
        """Take in a candidate at its place."""
        size = len(self)
        is_last = not size or self._candidates[-1].place < candidate.place  # as it mostly is
        at = size if is_last else bisect.bisect(self._candidates, candidate.place, key=_place)
        if size == len(self._scores):
            self._scores = np.resize(self._scores, 2 * size)
            self._hashes = np.resize(self._hashes, 2 * size)
        for column in (self._scores, self._hashes):
            column[at + 1 : size + 1] = column[at:size]
        self._scores[at] = candidate.score
        self._hashes[at : at + 1] = race.hashes_of([candidate.id])
        self._candidates.insert(at, candidate)

    def without(self, candidate_id: str) -> "Roster":
        """Return a roster without one of the candidates; itself if it is none of them."""
        at = next((i for i, each in enumerate(self) if each.id == candidate_id), None)
        if at is None:
            return self
        rest = Roster()
        rest._candidates = self._candidates[:at] + self._candidates[at + 1 :]
        rest._scores = np.delete(self._scores, at)
        rest._hashes = np.delete(self._hashes, at)
        return rest

    def of_iteration(self, iteration: int) -> Sequence[Candidate]:
        """Return the candidates whose place is in an iteration."""
        of = operator.attrgetter("iteration")
        first = bisect.bisect_left(self._candidates, iteration, key=of)
        return self._candidates[first : bisect.bisect(self._candidates, iteration, key=of)]

    def best(self, direction: Direction) -> Candidate:
        """Return the best candidate; of equal ones the shortest, then the first."""
        scores = self.scores
        best = scores.min() if direction is Direction.MINIMISE else scores.max()
        equal = np.flatnonzero(scores == best)
        return min((self[int(at)] for at in equal), key=lambda each: len(each.program))

    def first(self, most: int, direction: Direction) -> list[Candidate]:
        """Return the best candidates in their order; of equal ones the shortest, then the first."""
        scores = self.scores if direction is Direction.MINIMISE else -self.scores
        few = self._candidates
        if most < len(self):  # all that are as good as the last of them may be the shorter
            last = np.partition(scores, most - 1)[most - 1]
            few = [self[int(at)] for at in np.flatnonzero(scores <= last)]
        return sorted(few, key=lambda each: rank(each, direction))[:most]

    @property
    def scores(self) -> NDArray[np.float64]:
        """The scores as they are, shape (len(self),)."""
        return self._scores[: len(self)]

    @property
    def hashes(self) -> NDArray[np.uint64]:
        """The hashes of the ids that races are drawn by, shape (len(self),)."""
        return self._hashes[: len(self)]

    def __len__(self) -> int:
        """Return how many candidates there are."""
        return len(self._candidates)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Candidate]: ...
    def __getitem__(self, index: int | slice) -> Candidate | Sequence[Candidate]:
        """Return a candidate, or some, in the order of their places."""
        return self._candidates[index]

    def __iter__(self) -> Iterator[Candidate]:
        """Go through the candidates in the order of their places."""
        return iter(self._candidates)


_place = operator.attrgetter("place")


def rank(candidate: Candidate, direction: Direction) -> tuple[float, int]:
    """Return what is smaller for the better candidate, and of equal ones for the shorter."""
    return direction.key(candidate.score), len(candidate.program)


def best_of(candidates: Sequence[Candidate], direction: Direction) -> Candidate:
    """Return the best candidate; of equal ones the shortest, then the first."""
    if isinstance(candidates, Roster):
        return candidates.best(direction)
    return min(candidates, key=lambda each: rank(each, direction))


def best_few(candidates: Sequence[Candidate], count: int, direction: Direction) -> list[Candidate]:
    """Return the best candidates, the best first; of equal ones the shortest, then the first."""
    if isinstance(candidates, Roster):
        return candidates.first(count, direction)
    return sorted(candidates, key=lambda each: rank(each, direction))[:count]


def normalised(candidates: Sequence[Candidate], direction: Direction) -> NDArray[np.float64]:
    """Return the scores from 0 (the worst) to 1 (the best), shape (len(candidates),)."""
    return scaled(scores_of(candidates), direction)


def scores_of(candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """Return the scores as they are, shape (len(candidates),); those that a roster keeps."""
    if isinstance(candidates, Roster):
        return candidates.scores
    return np.array([candidate.score for candidate in candidates], dtype=np.float64)


def hashes_of(candidates: Sequence[Candidate]) -> NDArray[np.uint64]:
    """Return what races are drawn by, shape (len(candidates),); what a roster keeps."""
    if isinstance(candidates, Roster):
        return candidates.hashes
    return race.hashes_of([each.id for each in candidates])


def scaled(scores: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
    """Return the scores from 0 (the worst) to 1 (the best); all 1 if all are equal; same shape.

    Args:
        scores: finite, at least one.
        direction: of the scores.
    """
    scores = scores / max(1.0, float(np.abs(scores).max()))  # or the span could be infinite
    if direction is Direction.MINIMISE:
        scores = -scores
    span = scores.max() - scores.min()
    if span == 0:
        return np.ones_like(scores)
    result: NDArray[np.float64] = (scores - scores.min()) / span
    return result


def ranks(scores: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
    """Return each score's rank, 1 for the best; equal ones share the mean of theirs; same shape."""
    upward = -scores if direction is Direction.MAXIMISE else scores
    _, group, sizes = np.unique(upward, return_inverse=True, return_counts=True)
    mean_ranks: NDArray[np.float64] = np.cumsum(sizes) - (sizes - 1) / 2
    return mean_ranks[group]
