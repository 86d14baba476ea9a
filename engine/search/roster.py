"""A roster: candidates in the order of their places, and what draws among them need as arrays.

A draw looks at every candidate. Over Python objects that takes milliseconds once there are ten
thousand of them; over arrays that grow with the island it takes a fraction of one.

Covers: keeping the arrays, and who is best. Does not cover who is drawn: ``parents``, ``race``.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from engine.core import Candidate, Direction
from engine.search.race import hashes_of

Place = tuple[int, int, str]
"""Iteration, number among its children, and id: the order of programs, whenever they finished."""

_FIRST_ROOM = 64  # candidates


class Roster(Sequence[Candidate]):
    """Candidates that a choice is made among; only who keeps it may add to it."""

    def __init__(self, placed: Iterable[tuple[Place, Candidate]] = ()) -> None:
        """Begin with some candidates, each with its place, in any order."""
        self._places: list[Place] = []
        self._candidates: list[Candidate] = []
        self._scores: NDArray[np.float64] = np.empty(_FIRST_ROOM, dtype=np.float64)
        self._hashes: NDArray[np.uint64] = np.empty(_FIRST_ROOM, dtype=np.uint64)
        self._lengths: NDArray[np.int64] = np.empty(_FIRST_ROOM, dtype=np.int64)
        for place, candidate in placed:
            self.add(place, candidate)

    def add(self, place: Place, candidate: Candidate) -> None:
        """Take in a candidate at its place."""
        at, size = bisect.bisect(self._places, place), len(self)
        if size == len(self._scores):
            self._scores = np.resize(self._scores, 2 * size)
            self._hashes = np.resize(self._hashes, 2 * size)
            self._lengths = np.resize(self._lengths, 2 * size)
        for column in (self._scores, self._hashes, self._lengths):
            column[at + 1 : size + 1] = column[at:size]
        self._scores[at] = candidate.score
        self._hashes[at : at + 1] = hashes_of([candidate.id])
        self._lengths[at] = len(candidate.program)
        self._places.insert(at, place)
        self._candidates.insert(at, candidate)

    def without(self, candidate_id: str) -> Roster:
        """Return a roster without one of the candidates; itself if it is none of them."""
        likely = np.flatnonzero(self.hashes == hashes_of([candidate_id]))
        at = next((int(i) for i in likely if self._candidates[i].id == candidate_id), None)
        if at is None:
            return self
        rest = Roster()
        rest._places = self._places[:at] + self._places[at + 1 :]
        rest._candidates = self._candidates[:at] + self._candidates[at + 1 :]
        rest._scores = np.delete(self._scores, at)
        rest._hashes = np.delete(self._hashes, at)
        rest._lengths = np.delete(self._lengths, at)
        return rest

    def of_iteration(self, iteration: int) -> Sequence[Candidate]:
        """Return the candidates whose place is in an iteration."""
        first, end = (bisect.bisect(self._places, (n,)) for n in (iteration, iteration + 1))
        return self._candidates[first:end]

    def best(self, direction: Direction) -> Candidate:
        """Return the best candidate; of equal ones the shortest, then the first."""
        scores = self.scores
        best = scores.min() if direction is Direction.MINIMISE else scores.max()
        equal = np.flatnonzero(scores == best)
        return self._candidates[int(equal[np.argmin(self._lengths[equal])])]

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
