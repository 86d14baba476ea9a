"""Parents: whom an iteration changes. A file for each policy; ``policy`` has their contract."""

from engine.search.parents.factory import POLICIES, make_policy
from engine.search.parents.islands import IslandBandit
from engine.search.parents.policy import Child, Draw, ParentOutcome, ParentPolicy
from engine.search.parents.scores import best_of, normalised, rank

__all__ = [
    "POLICIES",
    "Child",
    "Draw",
    "IslandBandit",
    "ParentOutcome",
    "ParentPolicy",
    "best_of",
    "make_policy",
    "normalised",
    "rank",
]
