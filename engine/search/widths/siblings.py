"""Siblings: how likely it is that at least one of K children of one parent improves.

Two things keep K siblings from being worth K single children. Some parents and prompts bear fruit
and others don't, so siblings fare alike more often than children of different parents. Each call
therefore has a rate of its own, theta ~ Beta(alpha, beta), and given theta its children improve
independently: their number is beta-binomial. And the more children a call has, the less each may
bring: their temperatures go further from the best one, and what is listed last is weaker
(TurboEvolve, section 6.2). So the mean rate of a call's children falls with their number, by a
power,

    p_K = alpha / (alpha + beta) = p K^-b,                                          (1)

while the siblings' correlation rho = 1 / (alpha + beta + 1) (the intra-class correlation of the
beta-binomial; Skellam, J. R. Stat. Soc. B 10, 1948) is the same for all K. A beta-binomial of one p
has the same rate for each child at every K, which is not what Parallel Exploration measured. None
of K improves with probability

    E[(1 - theta)^K] = prod over j < K of (beta + j) / (alpha + beta + j).          (2)

A call holds its first children's, so the chance that any improves is at least that of fewer: where
alike siblings and a falling rate would make (2) say otherwise, the larger of the two is taken.

p, b and rho are not known. Their posterior is held on a grid, where it is exact: after n children
of which m improved, the logarithm of each cell's weight grows by

    ln B(alpha + m, beta + n - m) - ln B(alpha, beta),                              (3)

B being the beta function and alpha and beta those of K = n. Before that, what was told is
multiplied by `MEMORY`, because improvements get rarer as a search goes on: a call counts e times
less after 1 / (1 - `MEMORY`) more. The prior spreads p evenly over the orders of magnitude, from
`LEAST_RATE` on (below that K depends on rho and b alone), and has rho ~ Beta(1, 3), whose mean is
0.25, and b with a density that falls by e in `FALL`, to 0.6 at most. Both are from Parallel
Exploration ("Does the tradeoff pay off?"), which reports 9.8 % improvements per candidate at K = 1
and 4.3 % at K = 8, and does not say what it counts. As improving children per child the figures
are (1) with b = ln(9.8 / 4.3) / ln 8 = 0.40 and say nothing of rho. As improving calls per
candidate, at least one of eight siblings improves with probability 8 x 0.043 = 0.344, not
1 - 0.902^8 = 0.562, and (2) has this value with b = 0 at rho = 0.26. So the prior lies between, and
is wide. While all calls have the same K, nothing is learned of b.

Covers: the probability of an improvement. Does not cover how large it is, or what a call costs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

MEMORY = 0.98
"""What a call's weight is multiplied by with each later one."""
LEAST_RATE = 0.001
"""The smallest p of the grid."""
FALL = 0.2
"""By how much b grows while its prior density falls by e."""
_RATES = np.geomspace(LEAST_RATE, 0.9, 40)[:, np.newaxis, np.newaxis]  # p
_ROOTS = ((np.arange(12) + 0.5) / 12)[:, np.newaxis]
_CORRELATIONS = _ROOTS**2  # rho, closer together where it is small
_FALLS = np.linspace(0, 0.6, 5)  # b
_LOG_PRIOR = 2 * np.log(1 - _CORRELATIONS) + np.log(_ROOTS) - _FALLS / FALL
# Density of Beta(1, 3), times spacing; and that of b, which is equally spaced.
_SUMS = 1 / _CORRELATIONS - 1  # alpha + beta
_SHAPE = (_RATES.size, _CORRELATIONS.size, _FALLS.size)  # (40, 12, 5)


@dataclass(frozen=True, kw_only=True, slots=True)
class Odds:
    """How likely a child is to improve, and how alike siblings fare.

    Attributes:
        rate: p, of an only child; above 0 and below 1.
        correlation: rho, of siblings; above 0 and below 1.
        fall: b, the power of their number by which the rate of each falls; 0 or more.
    """

    rate: float
    correlation: float
    fall: float

    def of_each(self, most: int) -> NDArray[np.float64]:
        """Return the probability that a child of K improves, for K = 1..``most``; (most,)."""
        rates: NDArray[np.float64] = self.rate * np.power(
            np.arange(1, most + 1, dtype=np.float64), -self.fall
        )  # eq. 1
        return rates

    def of_any(self, most: int) -> NDArray[np.float64]:
        """Return the probability that at least one of K improves, for K = 1..``most``; (most,)."""
        total = 1 / self.correlation - 1
        alpha = self.of_each(most)[:, np.newaxis] * total  # (most, 1)
        factors = np.log1p(-alpha / (total + np.arange(most)))  # (most, most), of j = 0..most - 1
        none = np.tril(factors).sum(axis=1)  # ln of (2)
        chances: NDArray[np.float64] = np.maximum.accumulate(-np.expm1(none))
        return chances


class SiblingOdds:
    """What the calls so far say of the odds."""

    def __init__(self) -> None:
        """Start from the prior."""
        self._evidence = np.zeros(_SHAPE)

    def tell(self, *, children: int, improved: int) -> None:
        """Take in a call: how many children it had, and how many of them improved."""
        alpha = _RATES * max(1, children) ** -_FALLS * _SUMS
        beta = _SUMS - alpha
        likelihood = betaln(alpha + improved, beta + children - improved) - betaln(alpha, beta)
        self._evidence = MEMORY * self._evidence + likelihood  # eq. 3

    def draw(self, rng: np.random.Generator) -> Odds:
        """Return odds drawn from the posterior."""
        log_weights = self._evidence + _LOG_PRIOR
        weights = np.exp(log_weights - log_weights.max()).ravel()
        cell = int(rng.choice(weights.size, p=weights / weights.sum()))
        rate, correlation, fall = (int(each) for each in np.unravel_index(cell, _SHAPE))
        return Odds(
            rate=float(_RATES.flat[rate]),
            correlation=float(_CORRELATIONS.flat[correlation]),
            fall=float(_FALLS[fall]),
        )
