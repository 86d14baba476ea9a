"""The mix of operators: which one makes the next change on an island.

A mix belongs to one island. It is a fold over the calls that began and what became of them, in the
order of the log, and chance comes from the key of a choice alone. So a mix that is told a log again
chooses as the one that wrote it.

`FixedMix` draws by weight. `KlUcb` is a bandit whose arms are the operators and whose reward for a
call is the share of its children that are better than their parent. Garivier and Cappé, "The KL-UCB
algorithm for bounded stochastic bandits and beyond", COLT 2011, section 2: after n calls, N_a of
them with operator a, which earned S_a together, the next one has the largest

    max { q in [S_a / N_a, 1] : N_a kl(S_a / N_a, q) <= ln n },                              (1)
    kl(p, q) = p ln(p / q) + (1 - p) ln((1 - p) / (1 - q)),                                  (2)

with c = 0 in their (1), as they recommend. It is UCB1 (Auer, Cesa-Bianchi and Fischer, 2002) with
the bound that rewards near 0 deserve: a few children in a hundred improve, and UCB1's bonus of
sqrt(2 ln n / N_a) still is a quarter after hundreds of calls, so it would go on choosing evenly.

**Common random numbers.** A draw is a race (``engine.search.race``), so that an operator that can't
be used yet changes the draw only where it would have won. A call counts in N_a and n from its
beginning, with no reward until it is over. As most calls bring none, the operator that is chosen
while a call's verdicts are out is mostly the one that is chosen when they are in.

Covers: the choice. Does not cover which operators can be used: ``engine.search.chooser``.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from engine.search.race import winner

CROSSOVER = "crossover"
"""The operator that needs a second candidate."""
REPAIR = "repair"
"""The operator that needs a failed attempt, whose parent its children have."""
_HALVINGS = 50  # of an interval inside [0, 1], until it is as short as the numbers are exact


class Mix(Protocol):
    """Which operator each call of one island uses."""

    def choose(self, names: Sequence[str], *, key: int, guessed: Sequence[str] = ()) -> str:
        """Return one of ``names``, given what was told; asking again changes nothing.

        Args:
            names: of the operators that can be used now, at least one.
            key: of the draw, from 0 to 2^64 - 1.
            guessed: the operators of calls that were begun on guesses, of which nothing was told.
        """

    def begin(self, iteration: int, operator: str) -> None:
        """Take in that a call is made with an operator."""

    def tell(self, iteration: int, *, share: float) -> None:
        """Take in what became of a call.

        Args:
            iteration: of the call.
            share: of its children that are better than their parent, from 0 to 1.

        Raises:
            ValueError: ``share`` is out of its range, or no such call has begun that was not told.
                A mix that remembers nothing does not notice.
        """


class FixedMix:
    """Each operator in proportion to its weight."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        """``weights``: of the operators, all above 0."""
        self._weights = weights

    def choose(self, names: Sequence[str], *, key: int, guessed: Sequence[str] = ()) -> str:
        """Return one of ``names`` by chance."""
        return _drawn(names, self._weights, key)

    def begin(self, iteration: int, operator: str) -> None:
        """Learn nothing."""

    def tell(self, iteration: int, *, share: float) -> None:
        """Learn nothing."""


class KlUcb:
    """The operator with the largest upper bound (1) on its mean reward."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        """Start with no call.

        Args:
            weights: of the operators, all above 0: they decide, by chance, which of those comes
                first that were never used, or have equal bounds.
        """
        self._weights = weights
        self._calls: Counter[str] = Counter()  # N_a
        self._rewards: defaultdict[str, float] = defaultdict(float)  # S_a
        self._open: dict[int, str] = {}  # operators of the calls that are not over

    def choose(self, names: Sequence[str], *, key: int, guessed: Sequence[str] = ()) -> str:
        """Return one of ``names``; see `Mix.choose`."""
        calls = self._calls + Counter(guessed)
        fresh = [name for name in names if not calls[name]]
        if fresh:
            return _drawn(fresh, self._weights, key)
        level = math.log(calls.total())
        bounds = {
            name: upper_bound(self._rewards[name] / calls[name], calls=calls[name], level=level)
            for name in names
        }
        largest = max(bounds.values())
        return _drawn([name for name in names if bounds[name] == largest], self._weights, key)

    def begin(self, iteration: int, operator: str) -> None:
        """Count a call."""
        self._calls[operator] += 1
        self._open[iteration] = operator

    def tell(self, iteration: int, *, share: float) -> None:
        """Add the reward of a call; see `Mix.tell`."""
        if not 0 <= share <= 1:
            raise ValueError(f"share is {share}; it must be from 0 to 1")
        if iteration not in self._open:
            raise ValueError(f"iteration {iteration} has not begun, or was told before")
        self._rewards[self._open.pop(iteration)] += share


def make_mix(policy: str, weights: Mapping[str, float]) -> Mix:
    """Return the mix that the settings name, of the operators with these weights, all above 0."""
    return KlUcb(weights) if policy == "kl_ucb" else FixedMix(weights)


def upper_bound(mean: float, *, calls: int, level: float) -> float:
    """Return (1), from ``mean`` to 1.

    Args:
        mean: S_a / N_a, from 0 to 1.
        calls: N_a, 1 or more.
        level: ln n, 0 or more.
    """
    low, high = mean, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if calls * _divergence(mean, middle) <= level:
            low = middle
        else:
            high = middle
    return low


def _divergence(p: float, q: float) -> float:
    """Return (2), which is infinite for q = 1 and p < 1."""
    failing = 0.0 if p == 1 else math.inf if q == 1 else (1 - p) * math.log((1 - p) / (1 - q))
    return failing + (p * math.log(p / q) if p else 0.0)


def _drawn(names: Sequence[str], weights: Mapping[str, float], key: int) -> str:
    return names[winner(names, np.log([weights[name] for name in names]), key=key)]
