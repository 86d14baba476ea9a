"""``method=shinka``: its parts are what the paper and its code say."""

from __future__ import annotations

from engine import config
from engine.search.inspirations.archive import ArchiveSettings
from engine.search.novelty.cosine import CosineSettings
from engine.search.parents.shinka import ShinkaSettings


def test_its_parts_are_the_papers() -> None:
    settings = config.resolve(["method=shinka", "model=qwen3_coder_30b"])
    search, islands = settings.search, settings.islands
    assert isinstance(search.parent, ShinkaSettings) and search.parent.sharpness == 10.0
    assert search.parent.archive == 8
    assert isinstance(search.novelty, CosineSettings) and search.novelty.threshold == 0.999
    shown = search.inspirations
    assert isinstance(shown, ArchiveSettings)
    assert (shown.size, shown.best, shown.others) == (8, 4, 2)
    weights = {name: weight for name, weight in search.operators.items() if weight}
    assert weights == {"diff": 0.4, "rewrite": 0.4, "crossover": 0.2}
    assert (islands.count, islands.migrate_every, islands.migrants) == (5, 10, 3)
    assert (search.k, search.archive) == (1, "none")
    assert settings.prompts.history_tokens > 0
