"""What the next call of an island is made for, chosen on everything that was told.

**Common random numbers.** The way to choose a parent and the seed of a proposal do not depend on
the candidates, and the operator, the parent and a crossover's partner depend on them as little as
their distributions allow (``engine.search.race``, ``engine.search.mixes``). So a proposal that
is asked for before the last verdicts are in is mostly the one that is asked for afterwards.

Covers: which operators can be used, and in which order operator, parent, partner and width are
chosen. Does not cover the policies that choose each (``mixes``, ``parents``, ``widths``), or what
is shown: ``context.py``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.core import Proposal
from engine.search.archipelago import Archipelago
from engine.search.choice import Choice, chance_of
from engine.search.island import Island
from engine.search.population import REPAIR, Population
from engine.search.tactics import Tactician

CROSSOVER = "crossover"
"""The operator that needs a second candidate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chooser:
    """Chooses; it changes nothing.

    Attributes:
        operators: the names of those that there are.
        islands: whose policies are asked.
        population: whose failed attempts may be repaired.
        tactician: whose ideas may be for the best program; None for none.
        seed: of all choices.
    """

    operators: Sequence[str]
    islands: Archipelago
    population: Population
    tactician: Tactician | None
    seed: int

    def choose(
        self, iteration: int, *, island: int, parent_id: str | None, begun: Sequence[Proposal]
    ) -> Choice:
        """Return what an island's iteration is for; see `Search.ask`.

        Raises:
            ValueError: there is no such island, or nothing was told yet that may be a parent.
        """
        own, partner = self.islands[island], None
        if not own.eligible:
            raise ValueError("nothing to start from: no valid candidate was told")
        chance = chance_of(iteration, island=island, seed=self.seed)
        broken = self.population.broken(island=island, but=[each.repairs_id for each in begun])
        can = {CROSSOVER: len(own.eligible) > 1, REPAIR: broken is not None}
        operator = self.islands.mix(island).choose(
            [name for name in self.operators if can.get(name, True)],
            key=chance.operator,
            begun=[each.operator for each in begun],
        )
        repairs = broken if operator == REPAIR else None
        if repairs is not None:
            parent, rule = self.population.parent_of(repairs), REPAIR
        elif parent_id is not None:
            parent, rule = parent_id, "given"
        else:
            parent, rule = self._drawn(own, chance.parent, operator=operator)
        if operator == CROSSOVER:
            u, key = chance.partner
            partner = own.choose(u=u, key=key, but=parent).candidate.id
        return Choice(
            parent=parent,
            rule=rule,
            operator=operator,
            k=own.width.k(iteration=iteration),
            partner=partner,
            repairs=repairs,
        )

    def _drawn(self, own: Island, chance: tuple[float, int], *, operator: str) -> tuple[str, str]:
        """Return the parent that an island draws, and the rule.

        A call with an idea for a stagnation draws too, whose rule also says how the model is asked,
        and then changes the best program of all islands.
        """
        u, key = chance
        drawn = own.choose(u=u, key=key)
        if self.tactician is not None and self.tactician.changes_the_best(operator):
            return self.islands.best(1)[0].id, drawn.rule
        return drawn.candidate.id, drawn.rule
