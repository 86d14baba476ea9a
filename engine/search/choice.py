"""What a call is made for: operator, parent, how many children; and the chance in that choice.

Does not cover who chooses: ``chooser.py``, with ``parents``, ``mixes`` and ``widths``.
"""

from dataclasses import dataclass

import numpy as np


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
        inspirations: key of the choice of the programs that are shown.
    """

    parent: tuple[float, int]
    operator: int
    seed: int
    partner: tuple[float, int]
    inspirations: int


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
        inspirations=key(),
    )
