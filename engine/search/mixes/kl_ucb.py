"""KL-UCB: what improves parents more often comes more often.

A bandit whose arms are the operators and whose reward for a call is the share of its children that
are better than their parent. Source: Garivier and Cappé, "The KL-UCB algorithm for bounded
stochastic bandits and beyond", COLT 2011, section 2: after n calls, N_a of them with operator a,
which earned S_a together, the next one has the largest

    max { q in [S_a / N_a, 1] : N_a kl(S_a / N_a, q) <= ln n },                              (1)
    kl(p, q) = p ln(p / q) + (1 - p) ln((1 - p) / (1 - q)),                                  (2)

with c = 0 in their (1), as they recommend. It is UCB1 (Auer, Cesa-Bianchi and Fischer, 2002) with
the bound that rewards near 0 deserve: a few children in a hundred improve, and UCB1's bonus of
sqrt(2 ln n / N_a) still is a quarter after hundreds of calls, so it would go on choosing evenly.

A call counts in N_a and n from its beginning, with no reward until it is over. As most calls bring
none, the operator that is chosen while a call's verdicts are out is mostly the one that is chosen
when they are in.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from engine.search.mixes import MIXES, Mix, MixSettings, drawn
from engine.section import section

_HALVINGS = 50  # of an interval inside [0, 1], until it is as short as the numbers are exact


@MIXES.register("kl_ucb")
@section
class KlUcbSettings(MixSettings):
    """No parameters."""

    def make(self, *, weights: Mapping[str, float]) -> "KlUcb":
        """Return the mix of an island, with no call."""
        return KlUcb(weights)


class KlUcb(Mix):
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

    def choose(self, names: Sequence[str], *, key: int, begun: Sequence[str] = ()) -> str:
        """Return one of ``names``; see `Mix.choose`."""
        calls = self._calls + Counter(begun)
        fresh = [name for name in names if not calls[name]]
        if fresh:
            return drawn(fresh, self._weights, key=key)
        level = math.log(calls.total())
        bounds = {
            name: upper_bound(self._rewards[name] / calls[name], calls=calls[name], level=level)
            for name in names
        }
        largest = max(bounds.values())
        return drawn([name for name in names if bounds[name] == largest], self._weights, key=key)

    def begin(self, iteration: int, operator: str) -> None:
        """Count a call."""
        self._calls[operator] += 1
        self._open[iteration] = operator

    def tell(self, iteration: int, *, share: float) -> None:
        """Add the reward of a call; see `Mix.tell`."""
        self._rewards[self._open.pop(iteration)] += share


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
