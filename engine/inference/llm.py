"""vLLM's engine in this process: K children from one prompt.

Covers: starting the engine on a CPU or a GPU, running its steps, the model's tokenizer and chat
template, and its counts. Does not cover the children of a prompt (``fanout.py``),
what stands in a prompt (``engine.prompts``) or what becomes of a child.

The engine has no locks: one thread adds requests, steps and aborts. The tokenizer is a copy of the
engine's, so another thread may compose prompts meanwhile.
"""

from __future__ import annotations

import copy
import gc
import logging
import re
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from engine.core import ChatFrame, UserError
from engine.inference import compat
from engine.inference.engine_options import check_engine_options
from engine.inference.environment import is_cpu_build
from engine.inference.fanout import FanOut, Sampling
from engine.inference.kv_server import KVTransfer
from engine.inference.stats import EngineLoad, PrefixCacheCount, engine_counter
from engine.settings import ModelSettings

# Small blocks: each request computes the tail of its prompt that fills no block (vLLM's CPU
# backend takes multiples of 32).
_CPU_BLOCK_SIZE = 32
# The same for what is stored outside the engine, but each chunk is a file there.
_CPU_CHUNK_TOKENS = 2 * _CPU_BLOCK_SIZE
_GPU_CHUNK_TOKENS = 256
MOST_AT_ONCE = 64
"""Requests that vLLM runs at once, unless ``model.engine.max_num_seqs`` says otherwise."""
_MARKS = ("first-message", "first-answer", "second-message")  # stand in for a chat's messages
# Weights that are missing are a RuntimeError, an empty file of them is a struct.error.
_UNLOADABLE = (OSError, ValueError, RuntimeError, SafetensorError, struct.error)
_log = logging.getLogger(__name__)


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
            UserError: the model can't be loaded, or the installed vLLM or LMCache is one that the
                engine can't use; the message names it and what to do.
        """
        counter = engine_counter()
        try:
            args = engine_args(settings=settings, folder=str(folder), seed=seed)
            args.kv_transfer_config = _kv_transfer_config(kv_transfer)
            self._engine = _load(args, counter)
        except _errors(settings) as error:
            raise _unloadable(folder, error, settings) from error
        self._count = counter
        # A tokenizer can't be used by two threads at once, and the engine's step uses its own.
        self._tokenizer = copy.deepcopy(self._engine.get_tokenizer())
        self._fans: list[FanOut] = []
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
                "set all search.operators but infill to 0"
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
        fan = FanOut(
            engine=self._engine,
            step=self.step,
            call=self._calls,
            token_ids=list(token_ids),
            sampling=sampling,
        )
        self._fans.append(fan)
        return fan

    def step(self) -> None:
        """Run the engine for one step; each fan-out takes in the output of its children.

        The step's wall seconds are shared out evenly among the children in it.
        """
        requests = self._engine.get_num_unfinished_requests()
        began = time.perf_counter()
        outputs = self._engine.step()
        seconds = time.perf_counter() - began
        self._fans = [fan for fan in self._fans if fan.request_ids]
        owners = {request_id: fan for fan in self._fans for request_id in fan.request_ids}
        for fan in self._fans:
            fan.note_seconds(seconds / requests)
        for output in outputs:
            if output.request_id in owners:
                owners[output.request_id].note_output(output)

    def prefix_cache_count(self) -> PrefixCacheCount:
        """Return the scheduler's count of tokens looked up in and found in the prefix cache."""
        count: PrefixCacheCount = self._count.prefix_cache
        return count

    def load(self) -> EngineLoad:
        """Return how loaded the engine was in its last step."""
        load: EngineLoad = self._count.load
        return load

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


def most_at_once(settings: ModelSettings) -> int:
    """Return how many requests vLLM runs at once; more wait in its queue."""
    return int(settings.engine.get("max_num_seqs") or MOST_AT_ONCE)


def chunk_tokens(*, settings: ModelSettings, folder: str | Path) -> int:
    """Return how many tokens of KV to store together outside the engine: some of its blocks.

    Raises:
        UserError: the model's configuration can't be read.
    """
    if is_cpu_build() and "block_size" not in settings.engine:
        return _CPU_CHUNK_TOKENS
    try:
        config = engine_args(settings=settings, folder=str(folder), seed=0).create_engine_config()
    except _errors(settings) as error:
        raise _unloadable(folder, error, settings) from error
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


def _errors(settings: ModelSettings) -> tuple[type[Exception], ...]:
    """Return what loading a model may raise for the user's part in it."""
    # vLLM compares some values before it checks their types.
    return (*_UNLOADABLE, TypeError) if settings.engine else _UNLOADABLE


def _unloadable(folder: str | Path, error: Exception, settings: ModelSettings) -> UserError:
    """Return the error that says why, and which setting to change."""
    said = " ".join(str(error).split())
    hint = "give model.path=DIR with weights in Hugging Face's layout"
    if settings.engine:
        hint = f"{hint}, and see model.engine: {', '.join(settings.engine)}"
    # vLLM has no class of its own for this; the words are in all its messages, and in PyTorch's.
    if re.search(r"\bmemory\b|KV cache", said.replace(str(folder), ""), re.IGNORECASE):
        size = "model.kv_cache_gb" if is_cpu_build() else "model.gpu_memory_utilization"
        hint = f"change {size} or lower model.max_model_len, and see what else takes memory"
    return UserError(f"model {str(folder)!r} can't be loaded: {said[:300]}; {hint}")


def _kv_transfer_config(kv_transfer: KVTransfer | None) -> Any:
    if kv_transfer is None:
        return None
    compat.check("lmcache", "connector")
    from vllm.config import KVTransferConfig

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


def engine_args(*, settings: ModelSettings, folder: str, seed: int) -> Any:
    """Return what vLLM's engine is made with.

    Raises:
        UserError: the installed vLLM is one that the engine can't use, or ``settings.engine`` has
            a key that it can't have.
    """
    compat.check("engine")
    from vllm import EngineArgs
    from vllm.platforms import current_platform

    common: dict[str, Any] = {
        "model": folder,
        "seed": seed,
        "max_model_len": settings.max_model_len,
        "max_num_seqs": MOST_AT_ONCE,
        "enable_prefix_caching": True,
        "disable_log_stats": False,
        "use_tqdm_on_load": False,
    }
    if current_platform.is_cpu():
        common |= {
            "dtype": "bfloat16",
            "enforce_eager": True,
            "block_size": _CPU_BLOCK_SIZE,
            # A seeded request whose prefill is split crashes the CPU backend of vLLM 0.32
            # ("CPU Generator does not use offset"), so a prompt has to fit in one step.
            "enable_chunked_prefill": False,
            "max_num_batched_tokens": max(settings.max_model_len, 2048),
        }
    else:
        common["gpu_memory_utilization"] = settings.gpu_memory_utilization
    check_engine_options(settings.engine)
    return EngineArgs(**{**common, **settings.engine})
