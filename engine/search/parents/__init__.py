"""Parents: whom an iteration changes. A file for each policy; ``policy`` has their contract."""

from engine.search.parents.policy import (
    PARENTS,
    Draw,
    Offspring,
    ParentOutcome,
    ParentPolicy,
    ParentSettings,
)
from engine.search.parents.scores import best_of, normalised, rank

__all__ = [
    "PARENTS",
    "Draw",
    "Offspring",
    "ParentOutcome",
    "ParentPolicy",
    "ParentSettings",
    "best_of",
    "normalised",
    "rank",
]
