"""vLLM's engine in this process: K children from one prompt.

Covers: starting the engine on a CPU or a GPU, fanning one prompt out to K requests, handing back
each child as it finishes, aborting children, and counting tokens as vLLM counts them. Does not
cover what stands in a prompt (``engine.prompts``) or what becomes of a child.

The engine has no locks: one thread uses a `LanguageModel`.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.core import ChatFrame, Generation, UserError
from engine.inference.environment import is_cpu_build
from engine.inference.hot import HotPrefixes
from engine.inference.kv_server import KVTransfer
from engine.settings import ModelSettings

# Small blocks: each request computes the tail of its prompt that fills no block (vLLM's CPU
# backend takes multiples of 32).
_CPU_BLOCK_SIZE = 32
# The same for what is stored outside the engine, but each chunk is a file there.
_CPU_CHUNK_TOKENS = 2 * _CPU_BLOCK_SIZE
_GPU_CHUNK_TOKENS = 256
_MAX_NUM_SEQS = 64
_MARKS = ("first-message", "first-answer", "second-message")  # stand in for a chat's messages
_BANNED = -100.0  # the lowest logit bias that vLLM takes
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How one child is sampled."""

    temperature: float
    seed: int
    stop: tuple[str, ...]
    max_tokens: int
    banned: tuple[int, ...] = ()
    grammar: str | None = None


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


class LanguageModel:
    """Owns the one `LLMEngine` of this process."""

    def __init__(
        self,
        *,
        settings: ModelSettings,
        folder: str | Path,
        seed: int,
        kv_transfer: KVTransfer | None = None,
    ) -> None:
        """Load the model and its tokenizer.

        Args:
            settings: limits of the engine.
            folder: the weights, in Hugging Face's layout, or a hub id that is in the hub's cache.
            seed: of the engine; each child has its own seed besides.
            kv_transfer: where KV is kept outside the engine; None for nowhere. If that fails,
                now or later, the engine goes on without.

        Raises:
            UserError: the model can't be loaded; the message names it and what to do.
        """
        counter = _prefix_cache_counter()
        args = _engine_args(settings=settings, folder=str(folder), seed=seed)
        args.kv_transfer_config = _kv_transfer_config(kv_transfer)
        try:
            self._engine = _load(args, counter)
        except (OSError, ValueError) as error:
            raise _unloadable(folder, error) from error
        self._count = counter
        self._hot = HotPrefixes()
        self._engine.engine_core.engine_core.scheduler.kv_event_publisher = self._hot
        self._tokenizer = self._engine.get_tokenizer()
        self._calls = 0
        self.max_model_len = settings.max_model_len
        self.block_size = int(self._engine.vllm_config.cache_config.block_size)

    def encode(self, text: str) -> list[int]:
        """Return the token ids of ``text``, with no token added."""
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def chat_frame(self, *, system: str) -> ChatFrame:
        """Return what the model's chat template puts round the messages of a conversation.

        Raises:
            UserError: there is no template, or it takes no system message, leaves messages out or
                writes them otherwise than they are.
        """
        from jinja2 import TemplateError

        messages = [
            {"role": "system", "content": system},
            {"role": "user", "content": _MARKS[0]},
            {"role": "assistant", "content": _MARKS[1]},
            {"role": "user", "content": _MARKS[2]},
        ]
        try:
            short, whole = (
                str(
                    self._tokenizer.apply_chat_template(
                        messages[:count], tokenize=False, add_generation_prompt=True
                    )
                )
                for count in (2, 4)
            )
        except (TemplateError, ValueError) as error:
            raise UserError(
                f"the model's chat template can't be used: {' '.join(str(error).split())[:300]}; "
                "give search.operators.rewrite=0 search.operators.diff=0"
            ) from error
        opening, asked, closing = short.partition(_MARKS[0])
        _, answered, rest = whole.partition(_MARKS[1])
        turn, again, _ = rest.partition(_MARKS[2])
        if not (asked and answered and again):
            raise UserError("the model's chat template does not show every message as it is")
        return ChatFrame(opening=opening, closing=closing, turn=turn)

    def fanout(self, *, token_ids: Sequence[int], sampling: Sequence[Sampling]) -> FanOut:
        """Ask for one child per entry of ``sampling``, all from one prompt.

        All requests enter the same engine step, so the prompt is prefilled once.

        Raises:
            ValueError: the prompt and the longest completion exceed ``max_model_len``.
        """
        longest = len(token_ids) + max(each.max_tokens for each in sampling)
        if longest > self.max_model_len:
            raise ValueError(f"{longest} tokens exceed the model's {self.max_model_len}")
        self._calls += 1
        return FanOut(
            engine=self._engine, call=self._calls, token_ids=list(token_ids), sampling=sampling
        )

    def cached_tokens(self, token_ids: Sequence[int]) -> int:
        """Return how many tokens at a prompt's start the engine's prefix cache would serve now."""
        return self._hot.cached_tokens(token_ids)

    def prefix_cache_count(self) -> PrefixCacheCount:
        """Return the scheduler's count of tokens looked up in and found in the prefix cache."""
        count = self._count
        return PrefixCacheCount(
            queries=count.queries, hits=count.hits, external_hits=count.external_hits
        )

    def forget(self) -> None:
        """Empty the prefix cache, so that the next call starts cold.

        Raises:
            RuntimeError: a request still holds some of it.
        """
        if not self._engine.reset_prefix_cache():
            raise RuntimeError("the prefix cache is in use")

    def close(self) -> None:
        """Shut the engine down and free what it holds."""
        self._engine.engine_core.shutdown()


class FanOut:
    """The K children of one prompt while they are generated.

    Call `step` as long as `is_running`, or iterate to get the children in the order they finish.
    A caller that stops earlier must call `close`.
    """

    def __init__(
        self, *, engine: Any, call: int, token_ids: list[int], sampling: Sequence[Sampling]
    ) -> None:
        from vllm import SamplingParams
        from vllm.inputs import tokens_input
        from vllm.sampling_params import StructuredOutputsParams

        self._engine = engine
        self._prompt_tokens = len(token_ids)
        self._running = {f"{call}.{index}": index for index in range(len(sampling))}
        self._latest: dict[str, Any] = {}
        self._finished: list[Generation] = []
        self._seconds = 0.0  # inside the engine since the last child finished
        began = time.perf_counter()
        for request_id, each in zip(self._running, sampling, strict=True):
            params = SamplingParams(
                temperature=each.temperature,
                seed=each.seed,
                stop=list(each.stop),
                max_tokens=each.max_tokens,
                logit_bias=dict.fromkeys(each.banned, _BANNED) or None,
                structured_outputs=(
                    StructuredOutputsParams(grammar=each.grammar) if each.grammar else None
                ),
            )
            engine.add_request(request_id, tokens_input(token_ids), params)
        self._seconds += time.perf_counter() - began

    def __iter__(self) -> Iterator[Generation]:
        """Step until every child was handed out."""
        while self.is_running:
            yield from self.step()

    @property
    def in_flight(self) -> int:
        """Children that were not handed out yet."""
        return len(self._running) + len(self._finished)

    @property
    def is_running(self) -> bool:
        """Whether there is a child that was not handed out yet."""
        return self.in_flight > 0

    def step(self) -> list[Generation]:
        """Run the engine for one step; return the children that finished, most often none."""
        if self._running and not self._finished:
            began = time.perf_counter()
            outputs = self._engine.step()
            self._seconds += time.perf_counter() - began
            for output in outputs:
                self._take(output)
        finished, self._finished = self._finished, []
        return finished

    def abort(self, index: int) -> None:
        """End child ``index`` now; it is still handed out, with what vLLM had counted for it."""
        for request_id, number in list(self._running.items()):
            if number == index:
                self._engine.abort_request([request_id])
                self._finish(request_id, finish_reason="abort")

    def close(self) -> None:
        """Abort every child that is still running and forget those not handed out."""
        self._engine.abort_request(list(self._running))
        self._running.clear()
        self._finished.clear()

    def _take(self, output: Any) -> None:
        if output.request_id not in self._running:
            return  # aborted in an earlier step
        self._latest[output.request_id] = output
        if output.finished:
            reason = output.outputs[0].finish_reason
            self._finish(output.request_id, finish_reason=str(reason))

    def _finish(self, request_id: str, *, finish_reason: str) -> None:
        index = self._running.pop(request_id)
        output = self._latest.pop(request_id, None)  # None: aborted before its first token
        self._finished.append(
            Generation(
                index=index,
                text=output.outputs[0].text if output else "",
                token_ids=tuple(output.outputs[0].token_ids) if output else (),
                finish_reason=finish_reason,
                prompt_tokens=self._prompt_tokens if output else 0,
                cached_prompt_tokens=(output.num_cached_tokens or 0) if output else 0,
                llm_seconds=self._seconds,
            )
        )
        self._seconds = 0.0


def chunk_tokens(*, settings: ModelSettings, folder: str | Path) -> int:
    """Return how many tokens of KV to store together outside the engine: some of its blocks.

    Raises:
        UserError: the model's configuration can't be read.
    """
    if is_cpu_build():
        return _CPU_CHUNK_TOKENS
    try:
        config = _engine_args(settings=settings, folder=str(folder), seed=0).create_engine_config()
    except (OSError, ValueError) as error:
        raise _unloadable(folder, error) from error
    block_size = int(config.cache_config.block_size)  # hundreds, for a model with state layers
    return -(-_GPU_CHUNK_TOKENS // block_size) * block_size


def _load(args: Any, counter: Any) -> Any:
    """Return the engine; without LMCache if its server is gone by the time it is needed."""
    from vllm.distributed.kv_transfer import ensure_kv_transfer_shutdown
    from vllm.v1.engine.llm_engine import LLMEngine

    try:
        return LLMEngine.from_engine_args(args, stat_loggers=[counter])
    except ConnectionError:
        if args.kv_transfer_config is None:
            raise
        _log.warning("the LMCache server is gone; the engine is loaded again, without it")
    # Out of the handler, so that what was loaded before can be freed.
    ensure_kv_transfer_shutdown()
    gc.collect()
    args.kv_transfer_config = None
    return LLMEngine.from_engine_args(args, stat_loggers=[counter])


def _unloadable(folder: str | Path, error: Exception) -> UserError:
    return UserError(
        f"model {str(folder)!r} can't be loaded: {' '.join(str(error).split())[:300]}; "
        "give model.path=DIR with weights in Hugging Face's layout"
    )


def _kv_transfer_config(kv_transfer: KVTransfer | None) -> Any:
    from vllm.config import KVTransferConfig

    if kv_transfer is None:
        return None
    from engine.inference import kv_connector

    return KVTransferConfig(
        kv_connector=kv_connector.NAME,
        kv_connector_module_path=kv_connector.__name__,
        kv_role="kv_both",
        kv_load_failure_policy="recompute",
        kv_connector_extra_config={
            "lmcache.mp.host": "tcp://127.0.0.1",
            "lmcache.mp.port": kv_transfer.port,
            "lmcache.mp.mq_timeout": kv_connector.START_SECONDS,
            "brood.weights": kv_transfer.weights,
            "brood.pid": kv_transfer.pid,
        },
    )


def _engine_args(*, settings: ModelSettings, folder: str, seed: int) -> Any:
    from vllm import EngineArgs
    from vllm.config.kv_events import KVEventsConfig
    from vllm.platforms import current_platform

    common: dict[str, Any] = {
        "model": folder,
        # The publisher is replaced by `HotPrefixes`: nothing leaves the process.
        "kv_events_config": KVEventsConfig(enable_kv_cache_events=True, publisher="null"),
        "seed": seed,
        "max_model_len": settings.max_model_len,
        "max_num_seqs": _MAX_NUM_SEQS,
        "enable_prefix_caching": True,
        "disable_log_stats": False,
        "use_tqdm_on_load": False,
    }
    if not current_platform.is_cpu():
        return EngineArgs(gpu_memory_utilization=settings.gpu_memory_utilization, **common)
    return EngineArgs(
        dtype="bfloat16",
        enforce_eager=True,
        block_size=_CPU_BLOCK_SIZE,
        # A seeded request whose prefill is split crashes the CPU backend of vLLM 0.32
        # ("CPU Generator does not use offset"), so a prompt has to fit in one step.
        enable_chunked_prefill=False,
        max_num_batched_tokens=max(settings.max_model_len, 2048),
        **common,
    )


def _prefix_cache_counter() -> Any:
    """Return a stat logger, as its own factory, that adds up the prefix cache's counts."""
    from vllm.v1.metrics.loggers import StatLoggerBase

    class PrefixCacheCounter(StatLoggerBase):  # type: ignore[misc]
        queries = 0
        hits = 0
        external_hits = 0

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
                cls.queries += scheduler_stats.prefix_cache_stats.queries
                cls.hits += scheduler_stats.prefix_cache_stats.hits
                if scheduler_stats.connector_prefix_cache_stats is not None:
                    cls.external_hits += scheduler_stats.connector_prefix_cache_stats.hits

        def log_engine_initialized(self) -> None:
            """Nothing to say."""

    return PrefixCacheCounter
