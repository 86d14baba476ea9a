"""``method=turboevolve``: its parts are what the paper says."""

from __future__ import annotations

import pytest

from engine import config
from engine.search.inspirations.archive import ArchiveSettings
from engine.search.parents.hybrid import HybridSettings
from engine.search.widths.turboevolve import TurboEvolveSettings


def test_its_parts_are_the_papers() -> None:
    settings = config.resolve(["method=turboevolve", "model=qwen3_coder_30b"])
    search, islands = settings.search, settings.islands
    assert search.archive == "structure"
    assert {name for name, weight in search.operators.items() if weight} == {"verbalized"}
    assert isinstance(settings.width, TurboEvolveSettings)
    assert (settings.pool.mixing, settings.pool.elites) == (0.2, 0.2)
    assert [each.rpartition("/")[2] for each in settings.pool.sources] == ["pool"]
    # What it keeps of OpenEvolve's defaults.
    parent, shown = search.parent, search.inspirations
    assert isinstance(parent, HybridSettings)
    assert (parent.p_elite, parent.p_uniform, parent.gamma) == (0.7, 0.2, 1.0)
    assert isinstance(shown, ArchiveSettings)
    assert (shown.best, shown.others) == (3, 2)
    assert (islands.count, islands.migrate_every) == (5, 50)
    assert search.temperature_min == search.temperature_max == 0.7
    assert settings.prompts.history_tokens > 0  # or nothing of it would be shown
    assert settings.model.max_num_seqs == 256  # the model's own are kept


@pytest.mark.parametrize("model", ["qwen3_coder_30b", "mutation"])
def test_each_call_has_the_k_that_follows_from_all_verdicts_before_it(model: str) -> None:
    """A guess would have the K from before its siblings' verdicts; mutations guess by default."""
    settings = config.resolve(["method=turboevolve", f"model={model}"])
    assert not settings.pipeline.speculate


def test_a_problem_without_a_pool_begins_with_its_program() -> None:
    folder = ["problem.path=tests/advisor"]
    assert config.resolve(["method=turboevolve", *folder]).pool.sources == ()
