"""Predicting the parent that an island will draw once the verdicts that are out are in.

With speculation the next call of an island begins before its parent is known. The source of the
idea always named the best program there was ("Accelerating LLM Guided Search with Parallel
Exploration", "Speculative pipelining"), which is wrong as often as its sampler explores; it calls a
predictor that "mixes exploitation and exploration" an open end. Here several experts guess, and the
one is believed whose guesses were right most often on this island, of late:

- ``draw``: the policy's own draw, on what is known. Its random numbers are those of the real draw
  (``engine.search.race``), so it is wrong only where a program that is still out is drawn, or
  changes the weights of the others.
- ``best``: the best program that is known, as the source has it.
- ``again``: the parent of the last iteration of which a child was admitted; before the first, as
  ``draw``.

Whichever is believed, all are scored when the real parent is known (full information), so one that
is not believed can win that back. An expert's hits h out of t guesses, both multiplied by `MEMORY`
before each further one, give the mean (h + 1) / (t + 2) of its Beta(1 + h, 1 + t - h) posterior;
the largest is believed, of equal ones the first in the order above. There is no exploration to pay
for, as a guess that is not followed is scored too.

Nobody can guess a program without a verdict: a prompt says its parent's score.

Covers: one island. What was learned is lost with the process: it decides what is begun
early, and never what an island asks for.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

MEMORY = 0.95
"""What a guess's weight is multiplied by with each later one."""


class Expert(enum.StrEnum):
    """A way to guess."""

    DRAW = "draw"
    BEST = "best"
    AGAIN = "again"


@dataclass(frozen=True, kw_only=True, slots=True)
class Guesses:
    """How often an expert was right.

    Attributes:
        hits: guesses that were right.
        trials: all guesses that were compared with what came.
    """

    hits: int = 0
    trials: int = 0

    def __add__(self, other: Guesses) -> Guesses:
        return Guesses(hits=self.hits + other.hits, trials=self.trials + other.trials)


class Predictor:
    """Believes the expert that has been right most often of late."""

    def __init__(self) -> None:
        """Start with equal beliefs."""
        self._guessed: dict[int, Mapping[Expert, str]] = {}  # by iteration, of those not known yet
        self._figures = dict.fromkeys(Expert, Guesses())
        self._hits = dict.fromkeys(Expert, 0.0)  # h
        self._trials = 0.0  # t, the same for all

    @property
    def believed(self) -> Expert:
        """The expert with the highest posterior mean."""
        return max(Expert, key=lambda each: (self._hits[each] + 1) / (self._trials + 2))

    @property
    def figures(self) -> Mapping[Expert, Guesses]:
        """How often each expert was right."""
        return dict(self._figures)

    def guess(self, iteration: int, guesses: Mapping[Expert, str]) -> str:
        """Note who names which parent, by id, and return whom the believed one names.

        Guessing an iteration again takes the place of the guesses before.
        """
        self._guessed[iteration] = guesses
        return guesses[self.believed]

    def learn(self, iteration: int, *, parent: str) -> None:
        """Score the guesses of an iteration; one that was not guessed teaches nothing."""
        guesses = self._guessed.pop(iteration, None)
        if guesses is None:
            return
        self._guessed = {each: g for each, g in self._guessed.items() if each > iteration}
        self._trials = MEMORY * self._trials + 1
        for expert in Expert:
            hit = guesses[expert] == parent
            self._hits[expert] = MEMORY * self._hits[expert] + hit
            self._figures[expert] += Guesses(hits=int(hit), trials=1)
