"""How children are asked for: the group ``search``."""

import math
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from engine.prompts import OPERATORS
from engine.search.cells import CELLS, CellSettings
from engine.search.cells.grid import GridSettings
from engine.search.inspirations import INSPIRATIONS, InspirationSettings
from engine.search.mixes import MIXES, MixSettings
from engine.search.novelty import NOVELTY, NoveltySettings
from engine.search.parents import PARENTS, ParentSettings
from engine.section import Number, Section, Whole, require, section

Archive = Literal["none", "structure", "problem"]
NEED_MORE = ("crossover", "repair")
"""The operators that need a second program, with which no run can begin."""
MOST_CHILDREN = 4096
Weight = Annotated[Number, Field(ge=0)]


@section
class SearchSettings(Section):
    """How children are asked for.

    Attributes:
        k: children for each prompt.
        temperature_min: temperature of the first child; those between are spread evenly.
        temperature_max: temperature of the last child.
        novelty: which children are refused as near-copies; None for none.
        archive: which archive of MAP-Elites an island's parents are the elites of: ``none``, one
            over ``structure``, or over the features that the ``problem`` names; see
            ``engine.search.features``.
        inspirations: which other programs a prompt shows; None for what the layout does.
        cells: how the space of its features is cut into cells.
        failures: how many of the last failed attempts at changing the parent a prompt shows.
        parent: how the parent is chosen.
        operators: weight of each operator in the mix; at least one is above 0 that needs nothing
            but a parent.
        mix: how an operator is drawn from those whose weights are above 0.
    """

    k: Whole = Field(ge=1, le=MOST_CHILDREN)
    temperature_min: Number = Field(gt=0)
    temperature_max: Number
    novelty: Annotated[NoveltySettings | None, BeforeValidator(NOVELTY.read)]
    archive: Archive
    inspirations: Annotated[InspirationSettings | None, BeforeValidator(INSPIRATIONS.read)] = None
    # With a value of its own, as settings of runs from before it have none.
    cells: Annotated[CellSettings, BeforeValidator(CELLS.read)] = GridSettings(policy="grid")
    failures: Whole = Field(ge=0)
    parent: Annotated[ParentSettings, BeforeValidator(PARENTS.read)]
    operators: dict[str, Weight]
    mix: Annotated[MixSettings, BeforeValidator(MIXES.read)]

    @model_validator(mode="after")
    def _can_begin(self) -> Self:
        least, most = self.temperature_min, self.temperature_max
        must_be = f"at least search.temperature_min ({least})"
        require(least <= most, "temperature_max", most, must_be)
        weights = self.operators
        for name in weights:
            OPERATORS.find(name, given=f"operators.{name} is no operator")
        must_be = "a mix with at least one weight above 0, and a finite sum"
        require(0 < sum(weights.values()) < math.inf, "operators", weights, must_be)
        alone = any(weight for name, weight in weights.items() if name not in NEED_MORE)
        must_be = f"a mix with one that needs no second program, as {' and '.join(NEED_MORE)} do"
        require(alone, "operators", weights, must_be)
        return self
