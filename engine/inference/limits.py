"""What vLLM is told of a model where its user gave nothing: from the machine and ``config.json``.

Covers: how many requests and tokens a step has, the size of blocks of KV, and what hybrids need.
Does not cover the sizes that this follows from (``shape.py``), or the rest of vLLM's arguments
(``engine_options.py``).
"""

from dataclasses import dataclass

from engine.inference.memory_plan import plan_memory
from engine.inference.shape import ModelShape
from engine.settings import ModelSettings

MOST_AT_ONCE = 64
"""Requests in a step on a CPU, at most."""
MOST_ON_GPU = 256
"""The same on a GPU: 64 children of a call on each of four islands."""
_CPU_BLOCK = 32
"""Small blocks: each request computes the tail of its prompt that fills no block (vLLM's CPU
backend takes multiples of 32)."""
_GPU_BLOCK = 64
"""Tails cost a GPU little, and a prompt's blocks are hashed one by one in Python."""
_GPU_TOKENS = 8192
"""Tokens in a step; a prompt of an island fits into one."""
_CPU_TOKENS = 2048
_MATCH_UNIT = 16
"""Tokens at which a hybrid's prompt may be found in the cache, where a block has hundreds."""
_STATE_SHARE = 0.5
"""Of the memory for KV and states, what the states of running requests may take."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineLimits:
    """Arguments of vLLM's engine, by its names.

    Attributes:
        max_num_seqs: requests in a step, at most.
        max_num_batched_tokens: tokens in a step, at most.
        block_size: tokens of a block of KV; None where vLLM aligns it with a hybrid's states.
        prefix_match_unit: tokens of a block's hash; None for a block.
        language_model_only: whether an encoder for images is left out.
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    block_size: int | None
    prefix_match_unit: int | None = None
    language_model_only: bool = False


def cpu_limits(settings: ModelSettings) -> EngineLimits:
    """Return the limits of an engine on a CPU.

    A seeded request whose prefill is split crashes the CPU backend of vLLM 0.32 ("CPU Generator
    does not use offset"), so a prompt has to fit in one step.
    """
    tokens = settings.max_num_batched_tokens or max(settings.max_model_len, _CPU_TOKENS)
    return EngineLimits(
        max_num_seqs=settings.max_num_seqs or MOST_AT_ONCE,
        max_num_batched_tokens=tokens,
        block_size=settings.block_size or _CPU_BLOCK,
    )


def gpu_limits(settings: ModelSettings, shape: ModelShape, *, memory: int) -> EngineLimits:
    """Return the limits of an engine on a GPU.

    Args:
        settings: what they give is taken as it is.
        shape: of what a GPU has of the model.
        memory: the GPU's, in bytes.
    """
    block = None if shape.is_hybrid else _GPU_BLOCK
    return EngineLimits(
        max_num_seqs=settings.max_num_seqs or _sequences(settings, shape, memory),
        max_num_batched_tokens=settings.max_num_batched_tokens or _GPU_TOKENS,
        block_size=settings.block_size or block,
        prefix_match_unit=_MATCH_UNIT if shape.is_hybrid else None,
        language_model_only=shape.takes_images,
    )


def _sequences(settings: ModelSettings, shape: ModelShape, memory: int) -> int:
    """Return the largest power of two whose states leave room for KV, up to `MOST_ON_GPU`."""
    if not shape.state_per_request:
        return MOST_ON_GPU
    plan = plan_memory(
        shape, memory=memory, share=settings.gpu_memory_utilization, sequences=1, block_size=None
    )
    fitting = int(_STATE_SHARE * max(0, plan.cache)) // shape.state_per_request
    return min(MOST_ON_GPU, 1 << max(0, fitting.bit_length() - 1))
