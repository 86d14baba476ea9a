"""The width that pays: K with the largest expected improvement per second.

With P(K) the probability that at least one of K siblings improves (``siblings``) and seconds(K)
what a call costs (``call_cost``), calls of one width bring P(K) / seconds(K) improvements a
second in the long run (the renewal reward theorem). The policy takes the
smallest K that maximises it. How large an improvement is does not enter: it cancels if it does not
depend on K, and improvements shrink by orders of magnitude over a search, so their mean
would be that of the first few.

A call has a cost that does not depend on K. While children of wide calls are as good as others
(b = 0), P(K) is concave, so the best K is wider the rarer improvements are, the more a prompt costs
against a child and, as long as improvements are not common, the less alike siblings fare. A rare
improvement then makes P(K) grow as ln K at last, so the best K is finite even where none was ever
seen. Where the rate of each child falls with their number (b > 0), P(K) lies below that, need not
be concave, and is flat from some K on (``siblings`` takes the largest so far), so the best K is
finite there too.

Uncertainty. Rates of a few per cent are known badly from a few hundred children, costs well from
a few calls. So costs enter as estimated, and rates by Thompson sampling (Thompson, Biometrika 25,
1933): each iteration draws rate, correlation and b from their posterior and does what is best if
they are true. Not by an upper confidence bound: one set of parameters gives P for all K, and to
overrate it is to believe that few children are enough, so optimism here would always choose
narrow calls, and try nothing else. A draw also does well with several calls in flight: they get
different widths, where a bound repeats its choice until it is told what came of it
(Chapelle and Li, NIPS 2011, on delayed feedback).

Covers: one island's choice. Of the steps that it shares with other islands' calls, an island pays
its children's part (``call_cost``).
"""

from typing import Self

import numpy as np
from pydantic import Field, model_validator

from engine.search.widths import WIDTHS, IterationOutcome, WidthPolicy, WidthSettings
from engine.search.widths.call_cost import CallCost
from engine.search.widths.siblings import SiblingOdds
from engine.section import Whole, require, section
from engine.settings import MOST_CHILDREN

_STREAM = 0x57  # keeps the draws apart from others that derive from the same seed


@WIDTHS.register("cost_aware")
@section
class CostAwareSettings(WidthSettings):
    """Which widths are weighed.

    Attributes:
        k_min: the smallest K.
        k_max: the largest.
    """

    k_min: Whole = Field(default=1, ge=1)
    k_max: Whole = Field(default=32, le=MOST_CHILDREN)

    @model_validator(mode="after")
    def _bounds_ascend(self) -> Self:
        must_be = f"at least width.k_min ({self.k_min})"
        require(self.k_min <= self.k_max, "k_max", self.k_max, must_be)
        return self

    def make(self, *, k: int, seed: int, island: int) -> "CostAwareWidth":
        """Return the policy of an island, which starts from the priors."""
        return CostAwareWidth(self, seed=seed, island=island)


class CostAwareWidth(WidthPolicy):
    """Chooses K by what it brings in a second."""

    def __init__(self, settings: CostAwareSettings, *, seed: int, island: int) -> None:
        """Start from the priors; islands of one ``seed`` draw differently."""
        self._k_min = settings.k_min
        self._k_max = settings.k_max
        self._seed = seed
        self._island = island
        self._odds = SiblingOdds()
        self._cost = CallCost()

    def k(self, *, iteration: int) -> int:
        """Return K for an iteration; the draw follows from seed, island and iteration."""
        rng = np.random.default_rng([self._seed, iteration, self._island, _STREAM])
        chances = self._odds.draw(rng).of_any(self._k_max)
        rates = chances / self._cost.seconds(self._k_max)
        return self._k_min + int(np.argmax(rates[self._k_min - 1 :]))

    def tell(self, outcome: IterationOutcome) -> None:
        """Learn from an iteration."""
        self._odds.tell(children=outcome.children, improved=outcome.improved)
        self._cost.tell(outcome)
