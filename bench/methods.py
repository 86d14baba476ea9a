"""The search methods that ``bench.search`` compares: names for overrides of the defaults."""

from __future__ import annotations

from collections.abc import Mapping

BASELINE = "default"
METHODS: Mapping[str, tuple[str, ...]] = {
    BASELINE: (),
    "greedy": ("search.parent.p_elite=1", "search.parent.p_uniform=0"),
    "uniform": ("search.parent.p_elite=0", "search.parent.p_uniform=1"),
    "weighted": ("search.parent.p_elite=0", "search.parent.p_uniform=0"),
    "k1": ("search.k=1",),
    "k4": ("search.k=4",),
    "k16": ("search.k=16",),
    "turboevolve": ("width.kind=turboevolve",),
    "cost_aware": ("width.kind=cost_aware",),
    "islands4": ("islands.count=4",),
    "islands4-ucb": ("islands.count=4", "islands.choice=ucb"),
    "archive": ("search.archive=structure",),
    "archive-islands4": ("search.archive=structure", "islands.count=4"),
    "novelty": ("search.novelty=0.999",),
    **{
        policy: (f"search.parent.policy={policy}",)
        for policy in ("power", "rank", "shinka", "adaevolve", "puct", "thompson")
    },
    "mutation": ("model=mutation",),  # no model: the null hypothesis
}
"""By name, the arguments of ``engine.run`` that make the method of the default configuration."""
