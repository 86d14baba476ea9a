"""What a call is made for: operator, parent, and how many children.

What is chosen follows from what the islands were told and from the iteration's random numbers.

Covers: the choice of a call. Does not cover how each part of it is made (``parents``,
``mixes``, ``widths``), or what a call shows (``engine.search.search``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core import Proposal
from engine.search.archipelago import Archipelago
from engine.search.population import REPAIR, Population

CROSSOVER = "crossover"
"""The operator that needs a second candidate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """What a call is made for, by the ids of the programs.

    Attributes:
        parent: the program to change.
        rule: by which it was chosen; see `engine.core.Proposal`.
        operator: that changes it.
        k: number of children.
        partner: of a crossover: the program that the parent is combined with.
        repairs: of a repair: the failed attempt at changing the parent that is to be corrected.
    """

    parent: str
    rule: str
    operator: str
    k: int
    partner: str | None = None
    repairs: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Chance:
    """An iteration's random numbers; each decides one thing, whatever the others have decided.

    Attributes:
        parent: u and key of the choice of the parent; see `ParentPolicy.choose`.
        operator: key of the draw of the operator.
        seed: of the proposal.
        partner: u and key of the choice of the partner.
    """

    parent: tuple[float, int]
    operator: int
    seed: int
    partner: tuple[float, int]


def chance_of(iteration: int, *, island: int, seed: int) -> Chance:
    """Return the random numbers of an island's iteration in the run with this seed.

    The generator takes a missing fourth word for 0. Everything else that derives from a run's seed
    has a fourth word above 0, so it draws other numbers.
    """
    rng = np.random.default_rng([seed, island, iteration])

    def key() -> int:
        return int(rng.integers(2**64, dtype=np.uint64))

    return Chance(
        parent=(rng.random(), key()),
        operator=key(),
        seed=int(rng.integers(2**63)),
        partner=(rng.random(), key()),
    )


class Chooser:
    """Chooses for every island; it remembers nothing."""

    def __init__(
        self,
        *,
        islands: Archipelago,
        population: Population,
        operators: Sequence[str],
        seed: int,
    ) -> None:
        """Join the parts.

        Args:
            islands: of the search.
            population: of all islands.
            operators: names of those that may be drawn, in an order that stays.
            seed: of all choices.
        """
        self._islands = islands
        self._population = population
        self._operators = operators
        self._seed = seed

    def choose(
        self,
        iteration: int,
        *,
        island: int,
        parent_id: str | None = None,
        begun: Sequence[Proposal] = (),
    ) -> Choice:
        """Return what an iteration's call is made for; see `Search.ask`.

        Raises:
            ValueError: there is no such island, or nothing was told yet that may be a parent.
        """
        own = self._islands.island(island)
        if not own.eligible:
            raise ValueError("nothing to start from: no valid candidate was told")
        rule = "given"
        chance = chance_of(iteration, island=island, seed=self._seed)
        operator, repairs = self._operator(island, key=chance.operator, begun=begun)
        if repairs is not None:
            parent_id, rule = self._population.entry(repairs).parent, REPAIR
        if parent_id is None:
            u, key = chance.parent
            drawn = own.choose(u=u, key=key)
            parent_id, rule = drawn.candidate.id, drawn.rule
        partner = None
        if operator == CROSSOVER:
            u, key = chance.partner
            partner = own.choose(u=u, key=key, but=parent_id).candidate.id
        return Choice(
            parent=parent_id,
            rule=rule,
            operator=operator,
            k=own.k(iteration=iteration),
            partner=partner,
            repairs=repairs,
        )

    def _operator(
        self, island: int, *, key: int, begun: Sequence[Proposal]
    ) -> tuple[str, str | None]:
        """Return the operator of an island's call, and what it repairs if it is a repair.

        A crossover is not drawn where there is one candidate, nor a repair where nothing is to be
        repaired.
        """
        taken = [each.repairs_id for each in begun if each.repairs_id is not None]
        broken = self._population.broken(island=island, but=taken)
        can = {
            CROSSOVER: len(self._islands.island(island).eligible) > 1,
            REPAIR: broken is not None,
        }
        operator = self._islands.mix(island).choose(
            [name for name in self._operators if can.get(name, True)],
            key=key,
            begun=[each.operator for each in begun],
        )
        return operator, broken if operator == REPAIR else None
