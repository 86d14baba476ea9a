"""Predicting the parent that an island will draw once all verdicts are in.

With speculation the next call of an island begins before its parent is known. The source of the
idea ("Accelerating LLM Guided Search with Parallel Exploration", "Speculative pipelining") always
guesses the best program, which is wrong whenever its sampler explores; it leaves a predictor that
"mixes exploitation and exploration" to others. Here several experts guess. The predictor believes
the one that was right most often on this island of late:

- ``draw``: the policy's own draw on what is known, with the random numbers of the real draw
  (``engine.search.race``). It is wrong only where a program without a verdict is drawn, or changes
  the weights of the others.
- ``best``: the best program that is known, as the source has it.
- ``again``: the parent of the last iteration of which a child was admitted; before the first, as
  ``draw``.

Once the real parent is known, all experts are scored, also those that were not believed (full
information). So nothing has to be explored. An expert had h hits in t guesses, both multiplied by
`MEMORY` before each further guess; its posterior is Beta(1 + h, 1 + t - h) with the mean
(h + 1) / (t + 2). The expert with the largest mean is believed, of equal ones the first in the
order above.

No expert guesses a program without a verdict, because a prompt states its parent's score.

Covers: one island. What was learned is lost with the process: it decides what begins early, and
never what an island asks for.
"""

import enum
from collections.abc import Mapping

MEMORY = 0.95
"""What a guess's weight is multiplied by with each later one."""


class Expert(enum.StrEnum):
    """A way to guess."""

    DRAW = "draw"
    BEST = "best"
    AGAIN = "again"


class Predictor:
    """Believes the expert that has been right most often of late."""

    def __init__(self) -> None:
        """Start with equal beliefs."""
        self._guessed: dict[int, Mapping[Expert, str]] = {}  # by iteration, of those not known yet
        self._hits = dict.fromkeys(Expert, 0.0)  # h
        self._trials = 0.0  # t, the same for all

    @property
    def believed(self) -> Expert:
        """The expert with the highest posterior mean."""
        return max(Expert, key=lambda each: (self._hits[each] + 1) / (self._trials + 2))

    def guess(self, iteration: int, guesses: Mapping[Expert, str]) -> str:
        """Note which parent each expert names, by id, and return the believed expert's.

        Guesses for an iteration replace earlier ones for it.
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
            self._hits[expert] = MEMORY * self._hits[expert] + (guesses[expert] == parent)
