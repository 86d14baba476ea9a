"""The width that pays: K with the largest expected improvement per second.

With P(K) the probability that at least one of K siblings improves (``engine.search.siblings``) and
seconds(K) what a call costs (``engine.search.call_cost``), calls of one width bring P(K) /
seconds(K) improvements a second in the long run (the renewal reward theorem). The policy takes the
smallest K that maximises it. How large an improvement is does not enter: it cancels if it does not
depend on K, and improvements shrink by orders of magnitude over a search, so their mean
would be that of the first few.

P(K) is concave and a call has a cost that does not depend on K, so the best K is wider the rarer
improvements are, the more a prompt costs against a child and, as long as improvements are not
common, the less alike siblings fare. A rare improvement makes P(K) grow as ln K at last, so the
best K is finite even where none was ever seen.

Uncertainty. Rates of a few per cent are known badly from a few hundred children, costs well from
a few calls. So costs enter as estimated, and rates by Thompson sampling (Thompson, Biometrika 25,
1933): each iteration draws rate and correlation from their posterior and does what is best if they
are true. Not by an upper confidence bound: one pair of parameters sets P for all K, and to
overrate it is to believe that few children are enough, so optimism here would always choose
narrow calls, and try nothing else. A draw also does well with several calls in flight: they get
different widths, where a bound repeats its choice until it is told what came of it
(Chapelle and Li, NIPS 2011, on delayed feedback).

Covers: one island's choice. Of the steps that it shares with other islands' calls, an island pays
its children's part (``call_cost``).
"""

from __future__ import annotations

import numpy as np

from engine.search.call_cost import CallCost
from engine.search.order import in_order
from engine.search.siblings import SiblingOdds
from engine.search.width import IterationOutcome

_STREAM = 0x57  # keeps the draws apart from others that derive from the same seed


class CostAwareWidth:
    """Chooses K by what it brings in a second."""

    def __init__(self, *, k_min: int, k_max: int, seed: int, island: int) -> None:
        """Start from the priors.

        Args:
            k_min: the smallest K, 1 or more.
            k_max: the largest.
            seed: the run's.
            island: the island's number; islands draw differently.

        Raises:
            ValueError: there is no K between the bounds.
        """
        if not 1 <= k_min <= k_max:
            raise ValueError(f"k_min is {k_min}, k_max {k_max}; it must be 1 <= k_min <= k_max")
        self._k_min = k_min
        self._k_max = k_max
        self._seed = seed
        self._island = island
        self._last = -1
        self._odds = SiblingOdds()
        self._cost = CallCost()

    def k(self, *, iteration: int) -> int:
        """Return K for an iteration; the draw follows from seed, island and iteration."""
        rng = np.random.default_rng([self._seed, iteration, self._island, _STREAM])
        chances = self._odds.draw(rng).of_any(self._k_max)
        rates = chances / self._cost.seconds(self._k_max)
        return self._k_min + int(np.argmax(rates[self._k_min - 1 :]))

    def tell(self, outcome: IterationOutcome) -> None:
        """Learn from an iteration.

        Raises:
            ValueError: this iteration or a later one was told before.
        """
        self._last = in_order(outcome.iteration, after=self._last)
        self._odds.tell(children=outcome.children, improved=outcome.improved)
        self._cost.tell(outcome)
