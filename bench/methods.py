"""The search methods that ``bench.search`` compares: names for overrides of the defaults.

Each but the first few changes one thing of the plainest search, which has one island; those named
``default-...`` change one thing of the default configuration.
"""

from __future__ import annotations

from collections.abc import Mapping

BASELINE = "one-island"
_PLAIN = ("islands.count=1",)
METHODS: Mapping[str, tuple[str, ...]] = {
    BASELINE: _PLAIN,
    "default": (),
    "mutation": ("model=mutation", *_PLAIN),  # no model: the null hypothesis
    "greedy": (*_PLAIN, "search.parent.p_elite=1", "search.parent.p_uniform=0"),
    "uniform": (*_PLAIN, "search.parent.p_elite=0", "search.parent.p_uniform=1"),
    "weighted": (*_PLAIN, "search.parent.p_elite=0", "search.parent.p_uniform=0"),
    **{
        policy: (*_PLAIN, f"search.parent.policy={policy}")
        for policy in ("power", "shinka", "adaevolve", "puct", "thompson")
    },
    "k1": (*_PLAIN, "search.k=1"),
    "k4": (*_PLAIN, "search.k=4"),
    "k16": (*_PLAIN, "search.k=16"),
    "turboevolve": (*_PLAIN, "width.policy=turboevolve"),
    "cost_aware": (*_PLAIN, "width.policy=cost_aware"),
    "archive": (*_PLAIN, "search.archive=structure"),
    "novelty": (*_PLAIN, "search.novelty.policy=cosine", "search.novelty.threshold=0.999"),
    "default-k2": ("search.k=2",),
    "default-archive": ("search.archive=structure",),
}
"""By name, the arguments of ``engine.run`` that make the method of the default configuration."""
