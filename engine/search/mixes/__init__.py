"""Mixes: which operator a call uses. A file for each policy; ``policy`` has their contract."""

from engine.search.mixes.policy import MIXES, Mix, MixSettings

__all__ = ["MIXES", "Mix", "MixSettings"]
