"""What islands' logs say for the trainer when a driver begins, which has heard of nobody yet."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.budget import Account
from engine.cluster.islands import island_settings
from engine.cluster.learning.island_learner import Standing
from engine.cluster.places import island_folder
from engine.core import Direction, Update
from engine.settings import BudgetSettings, RunSettings
from engine.store import RunHistory, read_log, replay


@dataclass(frozen=True, kw_only=True, slots=True)
class IslandRecord:
    """What the log of an island says.

    Attributes:
        updates: the steps that it has.
        standing: of the island, which is nowhere.
    """

    updates: Sequence[Update]
    standing: Standing


def records(
    settings: RunSettings, folder: Path, *, direction: Direction
) -> Mapping[int, IslandRecord]:
    """Return what the logs of all islands say, by island.

    Args:
        settings: of the whole run.
        folder: the run's, whose islands are founded.
        direction: of the problem's score.

    Raises:
        UserError: a log can't be read.
    """
    found = {}
    for number in range(settings.islands.count):
        island, budget = island_folder(folder, number), island_settings(settings, number).budget
        history = replay(read_log(island), direction, name=island)
        found[number] = IslandRecord(
            updates=history.updates, standing=_standing(history, budget=budget)
        )
    return found


def _standing(history: RunHistory, *, budget: BudgetSettings) -> Standing:
    made = Counter(child.iteration for child in history.children.values())
    open_calls = [each for each in history.calls.values() if made[each.iteration] < each.k]
    return Standing(
        share=Account(budget, history).share,
        versions=frozenset({history.adapter, *(each.adapter for each in open_calls)}),
    )
