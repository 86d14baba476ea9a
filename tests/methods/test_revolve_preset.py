"""``method=revolve``: its parts are what the write-up says."""

from __future__ import annotations

from engine import config
from engine.search.parents.hybrid import HybridSettings


def test_its_parts_are_the_write_ups() -> None:
    settings = config.resolve(["method=revolve", "model=qwen3_coder_30b"])
    search = settings.search
    parent = search.parent
    assert isinstance(parent, HybridSettings)
    assert (parent.p_elite, parent.elites, parent.p_uniform, parent.gamma) == (0.1, 1, 0.2, 4.0)
    assert (search.k, settings.islands.count, search.archive) == (1, 1, "none")
    assert {name for name, weight in search.operators.items() if weight} == {"rewrite"}
    assert (search.novelty, search.inspirations, search.failures) == (None, None, 0)
    assert settings.prompts.history_tokens == 0
    assert settings.pipeline.speculate
    assert settings.evaluation.cascade.keep == 1  # each child is scored
