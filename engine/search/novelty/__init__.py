"""Novelty: which near-copies are refused. A file for each policy; ``policy`` has their contract."""

from engine.search.novelty.policy import NOVELTY, Novelty, NoveltySettings

__all__ = ["NOVELTY", "Novelty", "NoveltySettings"]
