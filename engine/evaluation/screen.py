"""A cheap stage as a screen: whom it lets through, and whether it still deserves to.

Covers: the threshold, the choice of whom to audit, and the estimate of how well the cheap score
(the proxy) ranks programs. Every decision follows from what was told of earlier iterations, the
run's seed and the candidate's id. Where an iteration begins only when all before it are over, a
resumed run therefore decides alike, whatever the order in which verdicts came in; where several are
under way at once, the verdicts that are in decide. Does not cover running anything: ``cascade.py``.
"""

import bisect
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engine.core import Direction, SwitchedOff
from engine.settings import FEWEST_SCORES, CascadeSettings

FEWEST_AUDITS = 8
"""Audited pairs without which no correlation is estimated."""
WINDOWS = 8
"""Windows of pairs that an estimate looks back: one alone holds too few audits to judge by."""
ERRORS = 2.0
"""Standard errors by which an estimate has to be too low for its stage to be switched off."""


@dataclass(frozen=True, slots=True, order=True)
class _Record:
    """What is known of one candidate at this stage; in the order that decisions go by."""

    iteration: int
    candidate: str
    proxy: float
    full: float | None
    audited: bool


@dataclass(kw_only=True, slots=True)
class Screen:
    """The population's scores at one cheap stage, and the decisions that follow from them."""

    stage: str
    direction: Direction
    settings: CascadeSettings
    seed: int
    _records: list[_Record] = field(default_factory=list, init=False)
    _pairs: list[_Record] = field(default_factory=list, init=False)  # fully evaluated ones
    _audits: list[_Record] = field(default_factory=list, init=False)  # audited ones of those
    _known: set[str] = field(default_factory=set, init=False)
    _checked: float = field(default=-math.inf, init=False)
    _off: SwitchedOff | None = field(default=None, init=False)

    def tell(
        self, candidate: str, *, iteration: int, proxy: float, full: float | None, audited: bool
    ) -> None:
        """Take in a candidate's scores; telling it again changes nothing.

        Args:
            candidate: its id.
            iteration: that generated it.
            proxy: its score at this stage.
            full: its score at the last stage; None if it did not get one.
            audited: whether it was rejected, here or at another stage, and went on as an audit.
        """
        if candidate in self._known:
            return
        self._known.add(candidate)
        record = _Record(iteration, candidate, proxy, full, audited)
        bisect.insort(self._records, record)
        if full is not None:
            bisect.insort(self._pairs, record)
            if audited:
                bisect.insort(self._audits, record)

    def threshold(self, iteration: int) -> float | None:
        """Return the worst proxy score with which a candidate of ``iteration`` goes on.

        It is the score that the best ``keep`` of the last ``window`` candidates reach: of n
        scores, the ceil(keep n)-th best. None (all go on) while n is below `FEWEST_SCORES`. Where
        all are to be kept nobody comes here.
        """
        end = _before(self._records, iteration)
        first = max(0, end - self.settings.window)
        scores = [record.proxy for record in self._records[first:end]]
        if len(scores) < FEWEST_SCORES:
            return None
        scores.sort(reverse=self.direction is Direction.MAXIMISE)
        return scores[math.ceil(self.settings.keep * len(scores)) - 1]

    def audits(self, candidate: str) -> bool:
        """Return whether this candidate, if it is rejected, is fully evaluated anyway."""
        digest = hashlib.sha256(f"{self.seed}/{self.stage}/{candidate}".encode()).digest()
        return int.from_bytes(digest[:8], "big") < self.settings.audit * 2**64

    def switched_off(self, iteration: int) -> SwitchedOff | None:
        """Return what switched this stage off before ``iteration``, if anything did.

        The correlation is looked at once for each ``window`` new pairs, after the iteration that
        completes them: a look is a chance to be wrong, and a stage once off stays off.
        """
        if self._off is None and iteration > self._checked:
            for end in self._looks(iteration):
                if self._off is None:
                    self._off = self._judged(end)
            self._checked = iteration
        off = self._off
        return off if off is not None and off.iteration <= iteration else None

    def resume(self, off: SwitchedOff | None, *, after: int) -> None:
        """Take over what an earlier session decided.

        Args:
            off: what switched this stage off; None if nothing did.
            after: the last iteration of which a candidate was decided on; what the records say of
                the ones up to it is not looked at again.
        """
        self._off = off
        self._checked = max(self._checked, after)

    def _judged(self, iteration: int) -> SwitchedOff | None:
        """Return the verdict on this stage after the iterations before ``iteration``.

        The estimate is `rank_correlation` over the last `WINDOWS` ``window`` fully evaluated
        candidates, or as many more as hold `FEWEST_AUDITS` audited ones. A candidate that passed is
        in there for certain and weighs 1; a rejected one is in there with probability ``audit`` and
        weighs 1 / ``audit``, for itself and the rejected ones that were not audited. Without the
        weights the estimate would be that of the passed candidates, whose proxy scores span less
        than the population's, and would be too low for a good proxy. The stage is switched off if
        the estimate is below ``correlation_min`` by more than `ERRORS` standard errors.

        Of 200 simulated runs of 2,000 candidates (bivariate normal scores, keep 0.5, audit 0.1,
        correlation_min 0.3, window 64) that switched their stage off: all with a correlation of 0,
        half of them within 350 candidates and nine in ten within 600; 40 with 0.3, which is no
        mistake either way; 1 with 0.4; none with 0.5.
        """
        end, audits = _before(self._pairs, iteration), _before(self._audits, iteration)
        if audits < FEWEST_AUDITS:
            return None
        audit = bisect.bisect_left(self._pairs, self._audits[audits - FEWEST_AUDITS])
        start = min(end - WINDOWS * self.settings.window, audit)
        pairs = self._pairs[max(0, start) : end]
        weights = [1 / self.settings.audit if record.audited else 1.0 for record in pairs]
        correlation = rank_correlation(
            [record.proxy for record in pairs],
            [record.full for record in pairs if record.full is not None],
            weights,
        )
        if correlation is None:
            return None
        error = upward_error(correlation, weights)
        if correlation + error >= self.settings.correlation_min:
            return None
        return SwitchedOff(
            stage=self.stage,
            iteration=iteration,
            correlation=correlation,
            error=error,
            pairs=len(pairs),
        )

    def _looks(self, iteration: int) -> list[int]:
        """Return the iterations up to this one before which another ``window`` pairs are full.

        Those that were checked before are left out.
        """
        window = self.settings.window
        full = _before(self._pairs, self._checked) // window
        completing = self._pairs[full * window : _before(self._pairs, iteration)][
            window - 1 :: window
        ]
        return sorted({record.iteration + 1 for record in completing})


def _before(records: Sequence[_Record], iteration: float) -> int:
    """Return how many of the records are of earlier iterations."""
    return bisect.bisect_left(records, iteration, key=lambda record: record.iteration)


def rank_correlation(x: ArrayLike, y: ArrayLike, weights: ArrayLike) -> float | None:
    """Estimate the Spearman rank correlation of a population from a weighted sample of it.

    Each pair stands for ``weight`` pairs of the population, the inverse of the probability with
    which it got into the sample (Horvitz and Thompson 1952, J. Am. Stat. Assoc. 47, 663-685). The
    estimate is the weighted Pearson correlation of weighted ranks (Bailey et al., "wCorr
    Formulas", section on the weighted Spearman correlation), where the rank of x_i is

        sum_j w_j [x_j < x_i] + 1/2 sum_j w_j [x_j = x_i],

    so that ties share the middle of their places. With equal weights this is Spearman's rho.

    Args:
        x: finite numbers, shape (n,).
        y: finite numbers, shape (n,).
        weights: above 0, shape (n,).

    Returns:
        A number from -1 to 1; None where all x or all y are equal, or there are none.
    """
    w = np.asarray(weights, dtype=np.float64)
    every = [_weighted_ranks(np.asarray(each, dtype=np.float64), w) for each in (x, y)]
    p, q = (ranks - (w @ ranks) / w.sum() if len(w) else ranks for ranks in every)
    spread = math.sqrt((w @ p**2) * (w @ q**2))
    return max(-1.0, min(1.0, float(w @ (p * q)) / spread)) if spread else None


def upward_error(correlation: float, weights: Sequence[float]) -> float:
    """Return how much `ERRORS` standard errors add to an estimate of `rank_correlation`.

    On the scale z = artanh(rho) the variance is 1.06 / (n - 3) (Fieller, Hartley and Pearson 1957,
    Biometrika 44, 470-481). Here n = (sum w)^2 / sum w^2, the size of an unweighted sample that
    tells as much (Kish 1965, "Survey Sampling", section 11.7).
    """
    n = sum(weights) ** 2 / sum(weight**2 for weight in weights)
    if n <= 3 or abs(correlation) >= 1:
        return 0.0 if n > 3 else 1.0 - correlation
    return math.tanh(math.atanh(correlation) + ERRORS * math.sqrt(1.06 / (n - 3))) - correlation


def _weighted_ranks(x: NDArray[np.float64], w: NDArray[np.float64]) -> NDArray[np.float64]:
    values, places = np.unique(x, return_inverse=True)
    weight = np.bincount(places, weights=w, minlength=len(values))
    middles = np.cumsum(weight) - weight / 2
    result: NDArray[np.float64] = middles[places]
    return result
