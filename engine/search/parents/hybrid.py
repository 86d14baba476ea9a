"""Hybrid: rEVOLVE's mix of greedy, uniform and weighted choice.

Source: the pseudocode in the rEVOLVE write-up, "The algorithm". With u uniform on [0, 1): the
best candidate if u < p_elite, a uniform choice if u < p_elite + p_uniform, and otherwise
candidate i with probability proportional to max(eps, s_i)^gamma. The write-up leaves open how
scores become the s_i; ``power`` says how they do here.

OpenEvolve's choice, which TurboEvolve takes over, is the same mix with a uniform choice among the
best ``elites`` in place of the best one: p_elite is its exploitation ratio, p_uniform its
exploration ratio, and the rest is weighted by the score, gamma = 1 and eps = 0.001.

The rules are called ``elite``, ``uniform`` and ``weighted``.

Both random choices are races (``engine.search.race``). So the parent that is drawn before the last
verdicts are in is mostly the one that is drawn afterwards. With the same u and key a uniform choice
changes only to a new candidate. A weighted choice also changes if a new best or worst score changes
the s_i of the others so much that another one wins.
"""

from collections.abc import Sequence
from typing import Self

from pydantic import model_validator

from engine.core import Candidate, Direction
from engine.search.parents import PARENTS, Draw, ParentPolicy, ParentSettings
from engine.search.parents.power import Exponent, Floor, power
from engine.search.race import winner
from engine.search.roster import best_few, best_of, hashes_of, normalised
from engine.section import Count, Share, require, section


@PARENTS.register("hybrid")
@section
class HybridSettings(ParentSettings):
    """How often each way is taken; the other choices are weighted.

    Attributes:
        p_elite: how often the best candidate is taken, or one of the best ``elites``.
        elites: how many there are.
        p_uniform: how often any.
        gamma: exponent of a weighted choice, as `PowerSettings` has it; the larger, the greedier.
        epsilon: the least share that a candidate counts for in a weighted choice.
    """

    p_elite: Share = 0.5
    elites: Count = 1
    p_uniform: Share = 0.1
    gamma: Exponent = 3.0
    epsilon: Floor = 0.001

    @model_validator(mode="after")
    def _shares_add_up(self) -> Self:
        fits = self.p_elite + self.p_uniform <= 1
        require(fits, "p_uniform", self.p_uniform, "at most 1 - search.parent.p_elite")
        return self

    def make(self, *, direction: Direction) -> "Hybrid":
        """Return the policy of an island."""
        return Hybrid(self, direction=direction)


class Hybrid(ParentPolicy):
    """The best, anyone, or one weighted by score."""

    def __init__(self, settings: HybridSettings, *, direction: Direction) -> None:
        """``direction``: of the scores."""
        self._settings = settings
        self._direction = direction

    def choose(self, candidates: Sequence[Candidate], *, u: float, key: int) -> Draw:
        """Choose one of ``candidates``, at least one; ``u`` says which of the three ways."""
        ways = self._settings
        if u < ways.p_elite:
            return Draw(candidate=self._elite(candidates, key), rule="elite")
        hashes = hashes_of(candidates)
        if u < ways.p_elite + ways.p_uniform:
            place = winner(hashes, 0.0, key=key)
            return Draw(candidate=candidates[place], rule="uniform")
        shares = normalised(candidates, self._direction)
        log_weights = power(shares, gamma=ways.gamma, epsilon=ways.epsilon)
        return Draw(candidate=candidates[winner(hashes, log_weights, key=key)], rule="weighted")

    def _elite(self, candidates: Sequence[Candidate], key: int) -> Candidate:
        if self._settings.elites == 1:
            return best_of(candidates, self._direction)
        elites = best_few(candidates, self._settings.elites, self._direction)
        return elites[winner(hashes_of(elites), 0.0, key=key)]
