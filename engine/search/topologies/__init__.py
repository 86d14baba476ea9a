"""The contract of the topologies: to which islands the migrants of one go.

Does not cover any topology, or when an island sends whom: `engine.search.archipelago`.
"""

from collections.abc import Sequence
from typing import Protocol

from engine.registry import Policies, Policy
from engine.section import section


class Topology(Protocol):
    """Which islands are neighbours; it remembers nothing, so that a replayed log goes alike."""

    def targets(self, island: int) -> Sequence[int]:
        """Return the islands that one sends its best to, which may be none; itself is no target."""


@section
class TopologySettings(Policy):
    """A topology as it is configured, under ``islands.topology``."""

    def make(self, *, islands: int) -> Topology:
        """Return the topology of so many islands, numbered from 0."""
        raise NotImplementedError


TOPOLOGIES = Policies(TopologySettings, package=__package__, group="brood.topologies")
