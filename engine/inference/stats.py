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
        external_hits: those found there no more, or never, but loaded from the LMCache server.
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
    """Return a stat logger, as its own factory, with ``prefix_cache()`` and ``load()``."""
    from vllm.v1.metrics.loggers import StatLoggerBase

    class EngineCounter(StatLoggerBase):  # type: ignore[misc]
        queries = 0
        hits = 0
        external_hits = 0
        waiting = 0
        kv_usage = 0.0

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
            cls.queries += scheduler_stats.prefix_cache_stats.queries
            cls.hits += scheduler_stats.prefix_cache_stats.hits
            if scheduler_stats.connector_prefix_cache_stats is not None:
                cls.external_hits += scheduler_stats.connector_prefix_cache_stats.hits
            cls.waiting = scheduler_stats.num_waiting_reqs
            cls.kv_usage = scheduler_stats.kv_cache_usage

        @classmethod
        def prefix_cache(cls) -> PrefixCacheCount:
            return PrefixCacheCount(
                queries=cls.queries, hits=cls.hits, external_hits=cls.external_hits
            )

        @classmethod
        def load(cls) -> EngineLoad:
            return EngineLoad(waiting=cls.waiting, kv_usage=cls.kv_usage)

        def log_engine_initialized(self) -> None:
            """Nothing to say."""

    return EngineCounter
