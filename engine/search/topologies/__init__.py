"""Topologies: where migrants go. A file for each policy; ``policy`` has their contract."""

from engine.search.topologies.policy import TOPOLOGIES, Topology, TopologySettings

__all__ = ["TOPOLOGIES", "Topology", "TopologySettings"]
