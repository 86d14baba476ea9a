"""From a policy's name to the policy: the one place that knows them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.core import Direction
from engine.search.parents.adaevolve import AdaEvolve
from engine.search.parents.hybrid import Hybrid
from engine.search.parents.policy import ParentPolicy
from engine.search.parents.power import Power
from engine.search.parents.puct import Puct
from engine.search.parents.ranking import Ranking
from engine.search.parents.shinka import Shinka
from engine.search.parents.thompson import Thompson

POLICIES: Mapping[str, Callable[..., ParentPolicy]] = {
    "hybrid": Hybrid,
    "power": Power,
    "rank": Ranking,
    "shinka": Shinka,
    "adaevolve": AdaEvolve,
    "puct": Puct,
    "thompson": Thompson,
}
"""By name, what makes the policy of an island that was told nothing."""


def make_policy(name: str, *, direction: Direction, **parameters: float) -> ParentPolicy:
    """Return a new policy for one island.

    Args:
        name: one of `POLICIES`.
        direction: of the scores.
        parameters: those of the policy; for one that is left out its source's value stands,
            where there is one.

    Raises:
        ValueError: there is no such policy, or a parameter is out of its range.
        TypeError: the policy has no such parameter, or lacks one.
    """
    if name not in POLICIES:
        raise ValueError(f"there is no parent policy {name!r}; there are {', '.join(POLICIES)}")
    return POLICIES[name](direction=direction, **parameters)
