"""Siblings: how likely it is that at least one of K children of one parent improves.

Some parents and prompts bear fruit and others don't, so siblings fare alike more often than
children of different parents. Each call therefore has a rate of its own, theta ~ Beta(alpha,
beta), and given theta its children improve independently: their number is beta-binomial. With the
mean rate p = alpha / (alpha + beta) and the siblings' correlation rho = 1 / (alpha + beta + 1)
(the intra-class correlation of the beta-binomial; Skellam, J. R. Stat. Soc. B 10, 1948), none of
K improves with probability

    E[(1 - theta)^K] = prod over j < K of (beta + j) / (alpha + beta + j).          (1)

p and rho are not known. Their posterior is held on a grid, where it is exact: after n children of
which m improved, the logarithm of each cell's weight grows by

    ln B(alpha + m, beta + n - m) - ln B(alpha, beta),                              (2)

B being the beta function. Before that, what was told is multiplied by `MEMORY`, because
improvements get rarer as a search goes on: a call counts e times less after 1 / (1 - `MEMORY`)
more. The prior spreads p evenly over the orders of magnitude, from `LEAST_RATE` on (below that K
depends on rho alone), and has rho ~ Beta(1, 3), whose mean is 0.25. That mean is from Parallel
Exploration ("Does the tradeoff pay off?"), which reports 9.8 % improvements per candidate
at K = 1 and 4.3 % at K = 8. Reading them as improving calls per candidate, at least one of eight
siblings improves with probability 8 x 0.043 = 0.344, not 1 - 0.902^8 = 0.562, and (1) has
this value at rho = 0.26. The article does not say what it counts, so the prior is wide.

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
_RATES = np.geomspace(LEAST_RATE, 0.9, 40)[:, np.newaxis]  # p
_ROOTS = (np.arange(12) + 0.5) / 12
_CORRELATIONS = _ROOTS**2  # rho, closer together where it is small
_LOG_PRIOR = 2 * np.log(1 - _CORRELATIONS) + np.log(_ROOTS)  # density of Beta(1, 3), times spacing
_SUMS = 1 / _CORRELATIONS - 1  # alpha + beta
_ALPHA = _RATES * _SUMS  # (40, 12)
_BETA = _SUMS - _ALPHA


@dataclass(frozen=True, kw_only=True, slots=True)
class Odds:
    """How likely a child is to improve, and how alike siblings fare.

    Attributes:
        rate: p, of a child; above 0 and below 1.
        correlation: rho, of siblings; above 0 and below 1.
    """

    rate: float
    correlation: float

    def of_any(self, most: int) -> NDArray[np.float64]:
        """Return the probability that at least one of K improves, for K = 1..``most``; (most,)."""
        total = 1 / self.correlation - 1
        none = np.cumsum(np.log1p(-self.rate * total / (total + np.arange(most))))  # ln of (1)
        chances: NDArray[np.float64] = -np.expm1(none)
        return chances


class SiblingOdds:
    """What the calls so far say of the odds."""

    def __init__(self) -> None:
        """Start from the prior."""
        self._evidence = np.zeros(_ALPHA.shape)

    def tell(self, *, children: int, improved: int) -> None:
        """Take in a call: how many children it had, and how many of them improved."""
        likelihood = betaln(_ALPHA + improved, _BETA + children - improved) - betaln(_ALPHA, _BETA)
        self._evidence = MEMORY * self._evidence + likelihood  # eq. 2

    def draw(self, rng: np.random.Generator) -> Odds:
        """Return odds drawn from the posterior."""
        log_weights = self._evidence + _LOG_PRIOR
        weights = np.exp(log_weights - log_weights.max()).ravel()
        cell = int(rng.choice(weights.size, p=weights / weights.sum()))
        row, column = divmod(cell, _CORRELATIONS.size)
        return Odds(rate=float(_RATES[row, 0]), correlation=float(_CORRELATIONS[column]))
