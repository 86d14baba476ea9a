"""What a call with K children costs, in seconds, learned from the calls so far.

A call computes its prompt once, and each further child the end of it that fills no block of the
prefix cache; then it decodes as long as its longest child does, and a step takes the longer the
more children are in it. Over a call's steps that adds up to

    t = a C + b S + c G,                                                            (1)

C the prompt tokens computed, S the steps (the tokens of the longest child) and G the tokens of all
children: exact for steps of b + c x (children in the step), whichever child ends when, as long as
the call is alone in its batch. Beside y other children it has x / (x + y) of such a step: then b is
nearly 0 and c what every child takes of it, so that the cost is nearly proportional to K, as it
should be: a wide call slows the others down. For K children that are like those before,

    C(K) = first + (K - 1) repeated,   S(K) = L (1 + v ln K),   G(K) = K L,         (2)

with the means of the last `WINDOW` calls: ``first`` computed by the child that computed most,
``repeated`` by each other one, L tokens a child. The longest of K grows with ln K where the
tails of the lengths are exponential; v is the ratio of the sums of S - G / K and of (G / K) ln K.
Evaluators work while the model decodes, so the slower side sets the pace:

    seconds(K) = max(a C(K) + b S(K) + c G(K), e K),                                (3)

e the evaluators' seconds a child.

The fit of (a, b, c). Noise is proportional to t, and some calls are stalled by something else.
So each round of iteratively reweighted least squares takes the residuals relative to the times
fitted in the round before, and gives them Huber's weights (Ann. Math. Stat. 35, 1964, p. 73): 1
up to 1.345 spreads, the spread being 1.4826 times the median of the absolute residuals. No cost is
negative, so the coefficients have a lower bound (non-negative least squares). A prior makes the
fit solvable after one call: each coefficient is what `_PRIOR` says, give or take as much again.
It gives only their ratios; their scale is that of the calls. With K always the same, b and c
keep to the prior's ratio as far as the lengths of siblings don't tell them apart.

Covers: one engine and its calls whose children each have an answer of their own. Does not cover
answers that list several programs (``verbalized``), whose steps grow with K.
"""

from collections import deque

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from engine.search.widths import IterationOutcome

WINDOW = 64
"""Calls that the estimates rest on."""
# Seconds a token of prefill, a step and a token of decode, as ratios: a step costs as much as some
# tokens do, because it reads all weights.
_PRIOR = np.array([1.0, 15.0, 1.0])
_PRIOR_SPREAD = 1.0  # of each coefficient, relative to the prior's
_LEAST = 0.01  # the smallest coefficient, relative to the prior's
_HUBER = 1.345
_LEAST_SPREAD = 0.05  # of the residuals: a perfect fit of few calls proves nothing
_ROUNDS = 10
_LEAST_SECONDS = 1e-6  # a call that took less was not timed
# The call that is supposed before the first.
_FIRST_TOKENS = 500
_CHILD_TOKENS = 50


class CallCost:
    """Learns what calls cost."""

    def __init__(self) -> None:
        """Start without a call."""
        self._calls: deque[IterationOutcome] = deque(maxlen=WINDOW)

    def tell(self, outcome: IterationOutcome) -> None:
        """Take in a call; one that generated nothing or was not timed is left out."""
        if outcome.generated_tokens and outcome.model_seconds >= _LEAST_SECONDS:
            self._calls.append(outcome)

    def seconds(self, most: int) -> NDArray[np.float64]:
        """Return the seconds of a call with K = 1..``most`` children, shape (most,), above 0.

        Before the first call only their ratios mean something.
        """
        ks = np.arange(1, most + 1)
        if not self._calls:
            usage = _usage(ks, first=_FIRST_TOKENS, repeated=0.0, length=_CHILD_TOKENS, stretch=0.0)
            before: NDArray[np.float64] = usage @ _PRIOR
            return before
        children = np.array([call.children for call in self._calls])
        steps = np.array([call.decode_steps for call in self._calls])
        generated = np.array([call.generated_tokens for call in self._calls])
        computed = np.array([call.computed_tokens for call in self._calls])
        repeated = sum(call.repeated_tokens for call in self._calls)
        lengths = generated / children
        usage = _usage(
            ks,
            first=(computed.sum() - repeated) / len(self._calls),
            repeated=repeated / max(1, int((children - 1).sum())),
            length=generated.sum() / children.sum(),
            stretch=_ratio((steps - lengths).sum(), (lengths * np.log(children)).sum()),
        )
        timed = np.array([call.model_seconds for call in self._calls])
        evaluation = sum(call.evaluation_seconds for call in self._calls) / children.sum()
        model = usage @ _fit(np.column_stack([computed, steps, generated]).astype(float), timed)
        slower: NDArray[np.float64] = np.maximum(model, evaluation * ks)  # eq. 3
        return slower


def _usage(
    ks: NDArray[np.int64], *, first: float, repeated: float, length: float, stretch: float
) -> NDArray[np.float64]:
    """Return C, S and G of calls with ``ks`` children, shape (len(ks), 3)."""
    return np.column_stack(  # eq. 2
        [first + (ks - 1) * repeated, length * (1 + stretch * np.log(ks)), ks * length]
    )


def _fit(usage: NDArray[np.float64], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a, b and c of eq. 1, shape (3,).

    Args:
        usage: C, S and G of each call, shape (n, 3); S and G are at least 1.
        seconds: what each took, above 0, shape (n,).
    """
    prior = _PRIOR * np.median(seconds / (usage @ _PRIOR))
    columns = usage * prior
    found = np.ones(3)  # in units of the prior
    for _ in range(_ROUNDS):
        fitted = columns @ found
        residuals = np.abs(seconds / fitted - 1)
        spread = max(_LEAST_SPREAD, 1.4826 * float(np.median(residuals)))
        weights = np.sqrt(_HUBER * spread / np.maximum(residuals, _HUBER * spread)) / fitted
        tie = spread / _PRIOR_SPREAD
        rows = np.vstack([columns * weights[:, np.newaxis], tie * np.eye(3)])
        target = np.concatenate([seconds * weights, np.full(3, tie)])
        found = _LEAST + nnls(rows, target - _LEAST * rows.sum(axis=1))[0]
    result: NDArray[np.float64] = prior * found
    return result


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0
