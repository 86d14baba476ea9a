"""What vLLM's scheduler counts: the prefix cache, and how loaded the engine is.

Covers: a stat logger that keeps the counts of one engine. Does not cover what each child cost:
vLLM says that with its output (``engine.inference.fanout``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class PrefixCacheCount:
    """The engine's own count of the prefix cache, in tokens, since it started.

    Attributes:
        queries: prompt tokens looked up.
        hits: those of them found in the engine's own prefix cache.
        external_hits: those that the engine's own cache lacked and the LMCache server had.
    """

    queries: int
    hits: int
    external_hits: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineLoad:
    """How loaded the engine was in its last step.

    Attributes:
        waiting: requests that vLLM had no room for.
        kv_usage: share of the KV cache's blocks that running requests hold, from 0 to 1; blocks
            that are merely cached can be had, and do not count.
    """

    waiting: int
    kv_usage: float


def engine_counter() -> Any:
    """Return a stat logger, as its own factory, with the latest ``prefix_cache`` and ``load``."""
    from vllm.v1.metrics.loggers import StatLoggerBase

    class EngineCounter(StatLoggerBase):  # type: ignore[misc]
        prefix_cache = PrefixCacheCount(queries=0, hits=0)
        load = EngineLoad(waiting=0, kv_usage=0.0)

        def __init__(self, vllm_config: Any, engine_index: int = 0) -> None:
            """Nothing to set up."""

        @classmethod
        def record(
            cls,
            scheduler_stats: Any,
            iteration_stats: Any,
            mm_cache_stats: Any = None,
            engine_idx: int = 0,
        ) -> None:
            if scheduler_stats is None:
                return
            own, external = (
                scheduler_stats.prefix_cache_stats,
                scheduler_stats.connector_prefix_cache_stats,
            )
            cls.prefix_cache = PrefixCacheCount(
                queries=cls.prefix_cache.queries + own.queries,
                hits=cls.prefix_cache.hits + own.hits,
                external_hits=cls.prefix_cache.external_hits + (external.hits if external else 0),
            )
            cls.load = EngineLoad(
                waiting=scheduler_stats.num_waiting_reqs, kv_usage=scheduler_stats.kv_cache_usage
            )

        def log_engine_initialized(self) -> None:
            """Nothing to say."""

    return EngineCounter
