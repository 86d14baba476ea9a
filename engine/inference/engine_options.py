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
from engine.inference import adapters, compat, shared_prefix
from engine.inference.environment import is_cpu_build
from engine.inference.limits import MOST_AT_ONCE, MOST_ON_GPU, cpu_limits, gpu_limits
from engine.inference.memory_plan import MemoryPlan, plan_memory
from engine.inference.shape import ModelShape, read_shape
from engine.settings import LearningSettings, ModelSettings

# Tokens that are stored together outside the engine: each chunk is a file there.
_CPU_CHUNK_TOKENS = 64
_GPU_CHUNK_TOKENS = 256
OWNED: Mapping[str, str] = {
    "model": "give model.path",
    "seed": "give seed",
    "dtype": "give model.dtype",
    "max_model_len": "give model.max_model_len, which prompts keep to",
    "max_num_seqs": "give model.max_num_seqs, which the loop keeps to",
    "max_num_batched_tokens": "give model.max_num_batched_tokens",
    "block_size": "give model.block_size, which prompts are aligned to",
    "gpu_memory_utilization": "give model.gpu_memory_utilization",
    "kv_transfer_config": "give cache=lmcache",
    "enable_prefix_caching": "the children of a prompt share it in the prefix cache",
    "disable_log_stats": "how loaded the engine is, is read from these statistics",
    "skip_tokenizer_init": "prompts are made with the tokenizer",
}
"""Fields that can't be given, and what to do instead, or why."""
DRAFTS = ("speculative_config", "spec_method", "spec_model", "spec_tokens")
"""Fields for drafts of tokens."""


def check_engine_options(options: Mapping[str, Any], *, learns: bool = False) -> None:
    """Check that each key is a field of `vllm.EngineArgs` that is the user's to give.

    Args:
        options: by name.
        learns: whether the model learns, which takes more fields.

    Raises:
        UserError: one is not; the message names it.
    """
    from vllm import EngineArgs

    fields = [field.name for field in dataclasses.fields(EngineArgs)]
    owned = {**OWNED, **(adapters.OWNED if learns else {})}
    for key in options:
        if key not in fields:
            close = difflib.get_close_matches(key, sorted({*fields} - {*owned}), n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UserError(f"model.engine.{key}: vLLM's EngineArgs has no such field{hint}")
        if key in owned:
            raise UserError(f"model.engine.{key} can't be given: {owned[key]}")
        if key in DRAFTS and is_cpu_build():
            # What stands in for a Triton kernel there leaves the temperatures out (vLLM 0.32,
            # vllm/utils/cpu_triton_utils.py), so that sampled tokens are noise.
            raise UserError(f"model.engine.{key} can't be given: vLLM can't draft on a CPU")


def engine_args(
    *, settings: ModelSettings, folder: str, seed: int, learning: LearningSettings | None = None
) -> Any:
    """Return what vLLM's engine is made with.

    Args:
        settings: the model's.
        folder: the weights.
        seed: of the engine.
        learning: what the model learns by; None, like the method ``none``, where it does not.

    Raises:
        UserError: the installed vLLM is one that the engine can't use, ``settings.engine`` has
            a key that it can't have, the model's configuration can't be read, or the trainer
            leaves no memory.
    """
    compat.check("engine")
    learning = learning if learning and learning.method != "none" else None
    from vllm import EngineArgs
    from vllm.platforms import current_platform

    on_cpu = current_platform.is_cpu()
    if on_cpu:
        compat.check("cpu")
    common: dict[str, Any] = {
        "model": folder,
        "seed": seed,
        "dtype": settings.dtype,
        "max_model_len": settings.max_model_len,
        "enable_prefix_caching": True,
        "disable_log_stats": False,
        "use_tqdm_on_load": False,
    }
    if on_cpu:
        common |= {"enforce_eager": True, "enable_chunked_prefill": False}
        limits = cpu_limits(settings)
    else:
        settings = _beside_trainer(settings, learning)
        common["gpu_memory_utilization"] = settings.gpu_memory_utilization
        is_hopper = current_platform.is_device_capability_family(90)
        # The processes that share a model do not know this backend.
        if settings.shared_prefix == "auto" and is_hopper and ranks_of(settings) == 1:
            common["attention_backend"] = shared_prefix.register()
        limits = gpu_limits(settings, _shape(settings, Path(folder)), memory=_gpu_memory())
    check_engine_options(settings.engine, learns=learning is not None)
    if learning is not None:
        adapters.check_adapters(on_cpu=on_cpu, dtype=settings.dtype)
        common |= adapters.adapter_args(learning, folder=Path(folder), on_cpu=on_cpu)
    return EngineArgs(**{**common, **dataclasses.asdict(limits), **settings.engine})


def plan_of(
    settings: ModelSettings, folder: Path, *, learning: LearningSettings | None = None
) -> MemoryPlan | None:
    """Return where the GPU's memory goes with a model; None on a CPU.

    Args:
        settings: the model's.
        folder: the weights.
        learning: what the model learns by; None, like the method ``none``, where it does not.

    Raises:
        UserError: the model's configuration can't be read, or the trainer leaves no memory.
    """
    if is_cpu_build():
        return None
    settings = _beside_trainer(settings, learning)
    shape, memory = _shape(settings, folder), _gpu_memory()
    limits = gpu_limits(settings, shape, memory=memory)
    return plan_memory(
        shape,
        memory=memory,
        share=settings.gpu_memory_utilization,
        sequences=limits.max_num_seqs,
        block_size=limits.block_size,
        gpus=ranks_of(settings),
    )


def ranks_of(settings: ModelSettings) -> int:
    """Return how many GPUs share the model, each with a process (vLLM's tensor parallelism)."""
    given = settings.engine.get("tensor_parallel_size", 1)
    return given if isinstance(given, int) and given > 0 else 1  # vLLM refuses others


def _shape(settings: ModelSettings, folder: Path) -> ModelShape:
    return read_shape(folder).on_each_of(ranks_of(settings))


def _beside_trainer(settings: ModelSettings, learning: LearningSettings | None) -> ModelSettings:
    """Return the settings with a share of the GPU's memory that leaves the trainer its own.

    Raises:
        UserError: nothing is left.
    """
    if learning is None or learning.method == "none":
        return settings
    memory, share = _gpu_memory(), settings.gpu_memory_utilization
    left = share - learning.memory_gb * 2**30 / memory
    if left <= 0:
        raise UserError(
            f"learning.memory_gb={learning.memory_gb:g} leaves nothing for the model of the "
            f"{share:.0%} of the GPU's {memory / 2**30:.0f} GiB that "
            "model.gpu_memory_utilization gives; lower it"
        )
    return dataclasses.replace(settings, gpu_memory_utilization=left)


def most_at_once(settings: ModelSettings) -> int:
    """Return the most requests that vLLM may run at once; more wait in its queue.

    On a GPU a hybrid may have room for fewer, if the settings name no number.
    """
    return settings.max_num_seqs or (MOST_AT_ONCE if is_cpu_build() else MOST_ON_GPU)


def _gpu_memory() -> int:
    from vllm.platforms import current_platform

    try:
        return int(current_platform.get_device_total_memory())
    except NotImplementedError as error:  # of the platform that vLLM takes where it finds none
        raise UserError(
            "vLLM is built for CUDA and sees no GPU; `nvidia-smi` says whether the driver does, "
            "and a container has to be given one"
        ) from error


def chunk_tokens(*, settings: ModelSettings, folder: str | Path) -> int:
    """Return how many tokens of KV to store together outside the engine: some of its blocks.

    Raises:
        UserError: the model's configuration can't be read, or the model is a hybrid: vLLM aligns
            its blocks only once it is loaded, and its states lie in blocks of their own.
    """
    if is_cpu_build():
        least, block_size = _CPU_CHUNK_TOKENS, cpu_limits(settings).block_size
    else:
        shape = _shape(settings, Path(folder))
        if shape.is_hybrid:
            raise UserError(
                f"cache=lmcache can't keep the states of {settings.name}, which has layers without "
                "KV; give cache=none, or a model with attention alone"
            )
        limits = gpu_limits(settings, shape, memory=_gpu_memory())
        least, block_size = _GPU_CHUNK_TOKENS, limits.block_size
    assert block_size is not None  # hybrids alone leave it to vLLM
    return -(-least // block_size) * block_size


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
    except ImportError as error:  # vLLM may ask for a package after minutes of loading
        said = " ".join(str(error).split())
        hint = "run `make environment`, or install brood[cpu] or brood[cuda]"
        raise UserError(f"model {str(folder)!r} can't be loaded: {said[:300]}; {hint}") from error
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
