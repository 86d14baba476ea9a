"""How loaded vLLM's engine was in its last step, as its statistics say."""

from typing import Any

from engine.inference.model import EngineLoad


def load_counter() -> Any:
    """Return a stat logger of vLLM's, as its own factory, that has the latest ``load``."""
    from vllm.v1.metrics.loggers import StatLoggerBase

    class LoadCounter(StatLoggerBase):  # type: ignore[misc]
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
            if scheduler_stats is not None:
                cls.load = EngineLoad(
                    waiting=scheduler_stats.num_waiting_reqs,
                    kv_usage=scheduler_stats.kv_cache_usage,
                )

        def log_engine_initialized(self) -> None:
            """Nothing to say."""

    return LoadCounter
