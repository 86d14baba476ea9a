"""Hybrid: rEVOLVE's mix of greedy, uniform and weighted choice.

Source: the pseudocode in the rEVOLVE write-up, "The algorithm". With u uniform on [0, 1): the
best candidate if u < p_elite, a uniform choice if u < p_elite + p_uniform, and otherwise
candidate i with probability proportional to max(eps, s_i)^gamma. The write-up leaves open how
scores become the s_i; ``power`` says how they do here.

The rules are called ``elite``, ``uniform`` and ``weighted``.

Both random choices are races (``engine.search.race``), so the parent that is drawn while a few
verdicts are not in yet is mostly the one that is drawn once they are: with the same u and key, a
uniform choice changes only to a new candidate; a weighted one also where a new best or worst score
changes the s_i of the others so much that another wins.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.core import Candidate, Direction
from engine.search.parents.policy import Draw, Memoryless
from engine.search.parents.power import Power
from engine.search.parents.scores import best_of
from engine.search.race import winner


class Hybrid(Memoryless):
    """The best, anyone, or one weighted by score."""

    def __init__(
        self,
        *,
        direction: Direction,
        p_elite: float,
        p_uniform: float,
        gamma: float,
        epsilon: float,
    ) -> None:
        """Keep the shares of the ways.

        Args:
            direction: of the scores.
            p_elite: how often the best is taken.
            p_uniform: how often anyone; the rest of the choices are weighted.
            gamma: as `Power` has it.
            epsilon: as `Power` has it.

        Raises:
            ValueError: one of them is out of its range, or the shares add up to more than 1.
        """
        if p_elite < 0 or p_uniform < 0 or p_elite + p_uniform > 1:
            raise ValueError(
                f"p_elite is {p_elite} and p_uniform {p_uniform}; both must be 0 or more, and "
                "their sum at most 1"
            )
        self._direction = direction
        self._p_elite = p_elite
        self._p_uniform = p_uniform
        self._weighted = Power(direction=direction, gamma=gamma, epsilon=epsilon)

    def choose(self, candidates: Sequence[Candidate], *, u: float, key: int) -> Draw:
        """Choose one of ``candidates``, at least one; ``u`` says which of the three ways."""
        if u < self._p_elite:
            return Draw(candidate=best_of(candidates, self._direction), rule="elite")
        if u < self._p_elite + self._p_uniform:
            ids = [each.id for each in candidates]
            place = winner(ids, np.zeros(len(ids)), key=key)
            return Draw(candidate=candidates[place], rule="uniform")
        drawn = self._weighted.choose(candidates, u=u, key=key)
        return Draw(candidate=drawn.candidate, rule="weighted")
