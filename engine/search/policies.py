"""From settings to the parts of an island: its window, and its policies for parents and width.

Does not cover the parts: ``window``, ``parents``, ``width``, ``cost_aware``.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.core import Direction
from engine.search.cost_aware import CostAwareWidth
from engine.search.parents import ParentPolicy, make_policy
from engine.search.width import FixedWidth, TurboEvolveWidth, WidthPolicy
from engine.search.window import Window
from engine.settings import ParentSettings, PromptSettings, WidthSettings

_PARAMETERS = {
    "hybrid": ("p_elite", "p_uniform", "gamma", "epsilon"),
    "power": ("gamma", "epsilon"),
}
"""Of the policies for parents that have any in the settings."""


def new_window(
    prompts: PromptSettings, *, size: Callable[[str], int], direction: Direction
) -> Window:
    """Return an empty window; it keeps nothing for a layout that shows none."""
    return Window(
        kept=prompts.history_tokens if prompts.layout == "stable" else 0,
        growth=prompts.growth_tokens,
        size=size,
        direction=direction,
    )


def new_width(width: WidthSettings, *, k: int, seed: int, island: int) -> WidthPolicy:
    """Return an island's policy for the number of children."""
    if width.kind == "fixed":
        return FixedWidth(k=k)
    if width.kind == "turboevolve":
        return TurboEvolveWidth()
    return CostAwareWidth(k_min=width.k_min, k_max=width.k_max, seed=seed, island=island)


def new_parents(parent: ParentSettings, *, direction: Direction) -> ParentPolicy:
    """Return an island's policy for parents."""
    chosen = {name: getattr(parent, name) for name in _PARAMETERS.get(parent.policy, ())}
    return make_policy(parent.policy, direction=direction, **chosen)
