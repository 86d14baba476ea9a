"""Where a GPU's memory goes: weights, KV, state, and what is left over.

A plan is made before anything is loaded, so that a model that can't fit is known of in the first
second. vLLM measures for itself, once the weights are there, how much is left for KV.
"""

import math
from dataclasses import dataclass
from pathlib import Path

from engine.core import UserError
from engine.inference.shape import ModelShape, parameters
from engine.settings import LearningSettings

_GIB = 2**30
WORKING = 4 * _GIB
"""Set aside for activations, CUDA graphs and the CUDA context: an allowance, not a measurement."""
_TRAINED = 2  # bytes of a parameter: a trainer on a GPU computes in bfloat16


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryPlan:
    """Sizes in bytes, on each GPU.

    Attributes:
        gpus: that share the model.
        memory: the GPU's.
        usable: the share of it that the engine may take.
        weights: the model's.
        cache: what is left for KV and states; negative if the weights do not fit.
        state: of as many requests as run at once.
        tokens: whose KV has room beside those states; 0 for a model without KV.
        sequences: requests that run at once.
        kv_per_token: KV of one token.
    """

    gpus: int
    memory: int
    usable: int
    weights: int
    cache: int
    state: int
    tokens: int
    sequences: int
    kv_per_token: int

    def fits(self, *, tokens: int) -> bool:
        """Whether so many tokens have room beside the states of all requests."""
        return self.tokens >= tokens if self.kv_per_token else self.cache >= self.state

    def __str__(self) -> str:
        """Say the plan in a line."""
        kv = max(0, self.cache - self.state)
        state = f", state {_gib(self.state)} of {self.sequences} requests" if self.state else ""
        whose = "the GPU's" if self.gpus == 1 else f"each of {self.gpus} GPUs'"
        return (
            f"memory plan: {_gib(self.usable)} of {whose} {_gib(self.memory)}: weights "
            f"{_gib(self.weights)}, working memory {_gib(WORKING)}{state}, KV {_gib(kv)} "
            f"({max(0, self.tokens):,} tokens at {self.kv_per_token / 1024:.0f} KiB)"
        )


def plan_memory(
    shape: ModelShape,
    *,
    memory: int,
    share: float,
    sequences: int,
    block_size: int | None,
    gpus: int = 1,
) -> MemoryPlan:
    """Return the plan for a model.

    Args:
        shape: of what a GPU has of the model.
        memory: the GPU's, in bytes.
        share: of it that the engine may take.
        sequences: requests that run at once.
        block_size: tokens of a block of KV; None for the size that vLLM aligns.
        gpus: that share the model.
    """
    usable = int(memory * share)
    cache = usable - shape.weights - WORKING
    state = sequences * shape.state_per_request
    # 0 for a model without attention.
    block = (block_size or shape.aligned_block or 1) * shape.kv_per_token
    return MemoryPlan(
        gpus=gpus,
        memory=memory,
        usable=usable,
        weights=shape.weights,
        cache=cache,
        state=state,
        tokens=(cache - state) // block * (block // shape.kv_per_token) if block else 0,
        sequences=sequences,
        kv_per_token=shape.kv_per_token,
    )


def check_trainer_fits(learning: LearningSettings, folder: Path) -> None:
    """Check that a trainer on a GPU may have the memory that its model takes, and some to work in.

    Args:
        learning: of a method but ``none``.
        folder: the model's.

    Raises:
        UserError: it may not, or the model's configuration can't be read.
    """
    count = parameters(folder)
    if count is None:  # quantised, which the trainer refuses
        return
    weights = int(_TRAINED * count)
    least = (weights + WORKING) / _GIB
    if learning.memory_gb < least:
        raise UserError(
            f"learning.memory_gb={learning.memory_gb:g} is too little: the trainer's copy of the "
            f"model takes {_gib(weights)}, and computing with it about {_gib(WORKING)} more; give "
            f"{math.ceil(least)} or more"
        )


def _gib(size: int) -> str:
    return f"{size / _GIB:.1f} GiB"
