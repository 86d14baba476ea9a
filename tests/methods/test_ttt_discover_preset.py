"""``method=ttt_discover``: its parts are what the paper and its code say."""

from __future__ import annotations

import math

from engine import config
from engine.search.parents.puct import PuctSettings


def test_its_parts_are_the_papers() -> None:
    settings = config.resolve(["method=ttt_discover", "model=qwen3_coder_30b"])
    search, learning = settings.search, settings.learning
    assert isinstance(search.parent, PuctSettings)
    assert (search.parent.exploration, search.parent.children, search.parent.buffer) == (1, 2, 1000)
    assert (search.k, learning.groups, settings.islands.count) == (64, 8, 1)
    assert (search.temperature_min, search.temperature_max) == (1.0, 1.0)
    assert {name for name, weight in search.operators.items() if weight} == {"rewrite"}
    assert (learning.method, learning.adapter, learning.rank) == ("entropic", "full", 32)
    assert (learning.learning_rate, learning.passes) == (4e-5, 1)
    assert learning.entropic_kl == math.log(2)
    assert settings.evaluation.cascade.keep == 1  # every rollout has its reward
