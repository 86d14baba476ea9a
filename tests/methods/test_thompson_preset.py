"""``method=thompson``: its parts are those of AB-MCTS."""

from __future__ import annotations

from engine import config


def test_its_parts_are_the_papers() -> None:
    settings = config.resolve(["method=thompson", "model=qwen3_coder_30b"])
    search = settings.search
    assert (search.parent.policy, search.k, settings.islands.count) == ("thompson", 1, 1)
    assert {name for name, weight in search.operators.items() if weight} == {"rewrite"}
    assert (search.archive, search.novelty, search.inspirations) == ("none", None, None)
    assert (settings.prompts.history_tokens, search.failures) == (0, 0)
