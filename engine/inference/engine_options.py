"""What vLLM's engine is made with: this engine's choices, and ``model.engine``, the user's.

The user's are given last, so they take the place of what this engine chose. Refused are a key that
`vllm.EngineArgs` has no field for, and those on which something else here relies. Does not cover
the values, which vLLM checks itself.
"""

import dataclasses
import difflib
import re
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from engine.core import UserError
from engine.inference import compat, shared_prefix
from engine.inference.environment import is_cpu_build
from engine.settings import ModelSettings

# Small blocks: each request computes the tail of its prompt that fills no block (vLLM's CPU
# backend takes multiples of 32).
_CPU_BLOCK_SIZE = 32
# The same for what is stored outside the engine, but each chunk is a file there.
_CPU_CHUNK_TOKENS = 2 * _CPU_BLOCK_SIZE
_GPU_CHUNK_TOKENS = 256
MOST_AT_ONCE = 64
"""Requests that vLLM runs at once, unless ``model.engine.max_num_seqs`` says otherwise."""
OWNED: Mapping[str, str] = {
    "model": "give model.path",
    "seed": "give seed",
    "max_model_len": "give model.max_model_len, which prompts keep to",
    "gpu_memory_utilization": "give model.gpu_memory_utilization",
    "kv_transfer_config": "give cache=lmcache",
    "enable_prefix_caching": "the children of a prompt share it in the prefix cache",
    "disable_log_stats": "how loaded the engine is, is read from these statistics",
    "skip_tokenizer_init": "prompts are made with the tokenizer",
}
"""Fields that can't be given, and what to do instead, or why."""
DRAFTS = ("speculative_config", "spec_method", "spec_model", "spec_tokens")
"""Fields for drafts of tokens."""


def check_engine_options(options: Mapping[str, Any]) -> None:
    """Check that each key is a field of `vllm.EngineArgs` that is the user's to give.

    Raises:
        UserError: one is not; the message names it.
    """
    from vllm import EngineArgs

    fields = [field.name for field in dataclasses.fields(EngineArgs)]
    for key in options:
        if key not in fields:
            close = difflib.get_close_matches(key, sorted({*fields} - {*OWNED}), n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UserError(f"model.engine.{key}: vLLM's EngineArgs has no such field{hint}")
        if key in OWNED:
            raise UserError(f"model.engine.{key} can't be given: {OWNED[key]}")
        if key in DRAFTS and is_cpu_build():
            # What stands in for a Triton kernel there leaves the temperatures out (vLLM 0.32,
            # vllm/utils/cpu_triton_utils.py), so that sampled tokens are noise.
            raise UserError(f"model.engine.{key} can't be given: vLLM can't draft on a CPU")


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
        is_hopper = current_platform.is_device_capability_family(90)
        if settings.shared_prefix == "auto" and is_hopper:
            common["attention_backend"] = shared_prefix.register()
    check_engine_options(settings.engine)
    return EngineArgs(**{**common, **settings.engine})


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
    with told_what_to_change(settings, folder):
        config = engine_args(settings=settings, folder=str(folder), seed=0).create_engine_config()
    block_size = int(config.cache_config.block_size)  # hundreds, for a model with state layers
    return -(-_GPU_CHUNK_TOKENS // block_size) * block_size


@contextmanager
def told_what_to_change(settings: ModelSettings, folder: str | Path) -> Iterator[None]:
    """Say in one line why a model can't be loaded, and which setting to change.

    Raises:
        UserError: what is done within raised what is the user's part in it.
    """
    # Missing weights are a RuntimeError, an empty file of them is a struct.error.
    expected = [OSError, ValueError, RuntimeError, SafetensorError, struct.error]
    if settings.engine:  # vLLM compares some values before it checks their types
        expected.append(TypeError)
    try:
        yield
    except tuple(expected) as error:
        said = " ".join(str(error).split())
        hint = "give model.path=DIR with weights in Hugging Face's layout"
        if settings.engine:
            hint = f"{hint}, and see model.engine: {', '.join(settings.engine)}"
        # vLLM has no class of its own for this; the words are in all its messages, and PyTorch's.
        if re.search(r"\bmemory\b|KV cache", said.replace(str(folder), ""), re.IGNORECASE):
            size = "model.kv_cache_gb" if is_cpu_build() else "model.gpu_memory_utilization"
            hint = f"change {size} or lower model.max_model_len, and see what else takes memory"
        raise UserError(f"model {str(folder)!r} can't be loaded: {said[:300]}; {hint}") from error
