"""``method=pacevolve``: its parts are what the paper says."""

from __future__ import annotations

from engine import config


def test_its_parts_are_the_papers() -> None:
    settings = config.resolve(["method=pacevolve", "model=qwen3_coder_30b"])
    search, learning = settings.search, settings.learning
    assert settings.advisor.enabled and learning.method == "phase_adaptive"
    assert (learning.reward, learning.best_of, learning.groups, learning.passes) == (
        *("target", 4, 1, 1),
    )
    assert (learning.clip_low, learning.clip_high, learning.weight_decay) == (0.2, 0.28, 0.1)
    assert (search.k, search.temperature_min, search.temperature_max) == (8, 1.0, 1.0)
    assert {name for name, weight in search.operators.items() if weight} == {"rewrite"}


def test_it_evaluates_every_candidate_in_full() -> None:
    assert config.resolve(["problem=eplb"]).evaluation.cascade.keep < 1  # or it would say nothing
    assert config.resolve(["method=pacevolve", "problem=eplb"]).evaluation.cascade.keep == 1
    given = ["method=pacevolve", "problem=eplb", "evaluation.cascade.keep=0.25"]
    assert config.resolve(given).evaluation.cascade.keep == 0.25
