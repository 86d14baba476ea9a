"""Populations side by side: the group ``islands``."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from engine.search.schedules import SCHEDULES, ScheduleSettings
from engine.search.topologies import TOPOLOGIES, TopologySettings
from engine.section import Count, Section, Whole, section

MOST_ISLANDS = 1024


@section
class IslandSettings(Section):
    """Populations that evolve side by side; see ``engine.search.island``.

    Attributes:
        count: how many there are.
        migrate_every: iterations of an island after which its best programs join its neighbours;
            0 for never.
        migrants: how many of them.
        topology: which islands are neighbours.
        schedule: whose turn it is, and when a further island is opened; None for all that can call.
    """

    count: Whole = Field(ge=1, le=MOST_ISLANDS)
    migrate_every: Whole = Field(ge=0)
    migrants: Count
    topology: Annotated[TopologySettings, BeforeValidator(TOPOLOGIES.read)]
    schedule: Annotated[ScheduleSettings | None, BeforeValidator(SCHEDULES.read)] = None
