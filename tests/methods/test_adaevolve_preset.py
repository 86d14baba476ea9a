"""``method=adaevolve``: its parts are what the paper and its code say."""

from __future__ import annotations

import pytest

from engine import config
from engine.core import UserError
from engine.search.inspirations.archive import ArchiveSettings
from engine.search.parents.adaevolve import AdaEvolveSettings
from engine.search.schedules.adaevolve import AdaEvolveScheduleSettings


def test_its_parts_are_the_papers() -> None:
    settings = config.resolve(["method=adaevolve", "model=qwen3_coder_30b"])
    search, islands = settings.search, settings.islands
    parent, schedule, shown = search.parent, islands.schedule, search.inspirations
    assert isinstance(parent, AdaEvolveSettings)
    assert (parent.decay, parent.intensity_min, parent.intensity_max) == (0.9, 0.15, 0.5)
    assert isinstance(schedule, AdaEvolveScheduleSettings)
    assert (schedule.decay, schedule.exploration) == (0.9, 1.41)
    assert (schedule.most, schedule.below, schedule.every) == (5, 0.015, 30)
    assert isinstance(shown, ArchiveSettings)
    assert (shown.size, shown.best, shown.others) == (20, 2, 2)
    assert (islands.count, islands.migrate_every, islands.migrants) == (2, 8, 5)
    assert {name for name, weight in search.operators.items() if weight} == {"diff"}
    assert (search.k, search.temperature_min, search.temperature_max) == (1, 0.7, 0.7)


def test_the_bandit_is_not_guessed_for() -> None:
    with pytest.raises(UserError, match=r"pipeline\.speculate is True; it must be false with isl"):
        config.resolve(["method=adaevolve", "pipeline.speculate=true"])
