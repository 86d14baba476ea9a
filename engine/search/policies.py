"""From settings to an island: its window, its archive, and its policies for parents and width.

Does not cover the parts: ``window``, ``elites``, ``parents``, ``width``, ``cost_aware``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from engine.core import Direction, Feature
from engine.search.cost_aware import CostAwareWidth
from engine.search.elites import Elites
from engine.search.features import Cell
from engine.search.island import Island
from engine.search.parents import ParentPolicy, make_policy
from engine.search.width import FixedWidth, TurboEvolveWidth, WidthPolicy
from engine.search.window import Window
from engine.settings import ParentSettings, PromptSettings, SearchSettings, WidthSettings

_PARAMETERS = {
    "hybrid": ("p_elite", "p_uniform", "gamma", "epsilon"),
    "power": ("gamma", "epsilon"),
}
"""Of the policies for parents that have any in the settings."""


def island_maker(
    *,
    settings: SearchSettings,
    width: WidthSettings,
    prompts: PromptSettings,
    direction: Direction,
    seed: int,
    size: Callable[[str], int],
    features: Sequence[Feature] | None,
    cells: Mapping[str, Cell | None],
) -> Callable[[int], Island]:
    """Return what makes the island of a number, without a program.

    Args:
        settings: how parents are chosen, and how many children there are where that is fixed.
        width: how many children each parent gets.
        prompts: for the size of the window.
        direction: of the scores.
        seed: of all choices.
        size: of a program's text, in the tokens that ``prompts`` counts.
        features: of the archive; None for an island without one.
        cells: of each candidate in the archives, by id; see `Elites`.
    """

    def new_island(island: int) -> Island:
        return Island(
            window=_window(prompts, size=size, direction=direction),
            width=_width(width, k=settings.k, seed=seed, island=island),
            parents=_parents(settings.parent, direction=direction),
            direction=direction,
            elites=None
            if features is None
            else Elites(features=features, direction=direction, cells=cells),
        )

    return new_island


def _window(prompts: PromptSettings, *, size: Callable[[str], int], direction: Direction) -> Window:
    """Return an empty window; it keeps nothing for a layout that shows none."""
    return Window(
        kept=prompts.history_tokens if prompts.layout == "stable" else 0,
        growth=prompts.growth_tokens,
        size=size,
        direction=direction,
    )


def _width(width: WidthSettings, *, k: int, seed: int, island: int) -> WidthPolicy:
    """Return an island's policy for the number of children."""
    if width.kind == "fixed":
        return FixedWidth(k=k)
    if width.kind == "turboevolve":
        return TurboEvolveWidth()
    return CostAwareWidth(k_min=width.k_min, k_max=width.k_max, seed=seed, island=island)


def _parents(parent: ParentSettings, *, direction: Direction) -> ParentPolicy:
    """Return an island's policy for parents."""
    chosen = {name: getattr(parent, name) for name in _PARAMETERS.get(parent.policy, ())}
    return make_policy(parent.policy, direction=direction, **chosen)
