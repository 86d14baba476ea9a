"""vLLM's engine in this process: K children from one prompt.

Covers: starting the engine on a CPU or a GPU, fanning one prompt out to K requests, handing back
each child as it finishes, aborting children, and counting tokens as vLLM counts them. Does not
cover what stands in a prompt (``engine.prompts``) or what becomes of a child.

The engine has no locks: one thread uses a `LanguageModel`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.core import Generation, UserError
from engine.settings import ModelSettings

# Small blocks: each request computes the tail of its prompt that fills no block (vLLM's CPU
# backend takes multiples of 32).
_CPU_BLOCK_SIZE = 32
_MAX_NUM_SEQS = 64
_BANNED = -100.0  # the lowest logit bias that vLLM takes


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
    """The engine's own count of the prefix cache, in tokens, since it started."""

    queries: int
    hits: int


class LanguageModel:
    """Owns the one `LLMEngine` of this process."""

    def __init__(self, *, settings: ModelSettings, folder: str | Path, seed: int) -> None:
        """Load the model and its tokenizer.

        Args:
            settings: limits of the engine.
            folder: the weights, in Hugging Face's layout, or a hub id that is in the hub's cache.
            seed: of the engine; each child has its own seed besides.

        Raises:
            UserError: the model can't be loaded; the message names it and what to do.
        """
        from vllm.v1.engine.llm_engine import LLMEngine

        counter = _prefix_cache_counter()
        try:
            self._engine = LLMEngine.from_engine_args(
                _engine_args(settings=settings, folder=str(folder), seed=seed),
                stat_loggers=[counter],
            )
        except (OSError, ValueError) as error:
            raise UserError(
                f"model {str(folder)!r} can't be loaded: {' '.join(str(error).split())[:300]}; "
                "give model.path=DIR with weights in Hugging Face's layout"
            ) from error
        self._count = counter
        self._tokenizer = self._engine.get_tokenizer()
        self._calls = 0
        self.max_model_len = settings.max_model_len

    def encode(self, text: str) -> list[int]:
        """Return the token ids of ``text``, with no token added."""
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def chat(self, *, system: str, user: str) -> str:
        """Return the model's own chat form of a system and a user message, ready for an answer."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        text = self._tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        return str(text)

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

    def prefix_cache_count(self) -> PrefixCacheCount:
        """Return the scheduler's count of tokens looked up in and found in the prefix cache."""
        return PrefixCacheCount(queries=self._count.queries, hits=self._count.hits)

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
    def is_running(self) -> bool:
        """Whether there is a child that was not handed out yet."""
        return bool(self._running or self._finished)

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
                finish_reason=finish_reason,
                prompt_tokens=self._prompt_tokens if output else 0,
                cached_prompt_tokens=(output.num_cached_tokens or 0) if output else 0,
                generated_tokens=len(output.outputs[0].token_ids) if output else 0,
                llm_seconds=self._seconds,
            )
        )
        self._seconds = 0.0


def _engine_args(*, settings: ModelSettings, folder: str, seed: int) -> Any:
    from vllm import EngineArgs
    from vllm.platforms import current_platform

    common: dict[str, Any] = {
        "model": folder,
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

        def log_engine_initialized(self) -> None:
            """Nothing to say."""

    return PrefixCacheCounter
