"""What a step of decoding has to read from memory, and how fast this machine reads.

A step that makes one token for each of K children can't be faster than reading the weights that
it uses and the KV of all that the children look at (the memory roofline, Williams et al. 2009).
Covers: these bytes, from ``config.json``, for children of one prompt. Encoders for images count as
weights that are read, and experts as if they were drawn evenly. Does not cover what is computed.
"""

from __future__ import annotations

import functools
import json
import time
from dataclasses import dataclass
from pathlib import Path

from engine.inference.shape import ModelShape, read_shape

_HALF = 2  # bytes of a number of bfloat16


@dataclass(frozen=True, kw_only=True, slots=True)
class StepBytes:
    """Bytes that a step reads.

    Attributes:
        weights: of the layers, the experts that some child uses, and the output's vocabulary.
        unshared: KV and states, with the prompt's KV once for each child.
        shared: the same, with the prompt's KV once.
    """

    weights: int
    unshared: int
    shared: int


def step_bytes(folder: Path, *, k: int, prefix: int, suffix: float) -> StepBytes:
    """Return the bytes of a step of ``k`` children.

    Args:
        folder: the model's, with its ``config.json``.
        k: children of one prompt.
        prefix: tokens of the prompt.
        suffix: tokens that each child has of its own.

    Raises:
        UserError: the configuration can't be read.
    """
    shape = _shape(folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    text = config.get("text_config") or config
    weights = float(shape.weights)
    if not config.get("tie_word_embeddings", text.get("tie_word_embeddings", False)):
        weights -= _HALF * text["vocab_size"] * text["hidden_size"]  # looked up, not read
    if experts := text.get("num_experts"):
        method = (config.get("quantization_config") or {}).get("quant_method")
        each = 3 * text["hidden_size"] * text["moe_intermediate_size"] * text["num_hidden_layers"]
        unused = (1 - text["num_experts_per_tok"] / experts) ** k
        weights -= experts * each * (1 if method == "fp8" else _HALF) * unused
    state = 2 * k * shape.state_layers * (shape.state_of_layer or 0)  # read, and written
    own = k * suffix * shape.kv_per_token + state
    return StepBytes(
        weights=round(weights),
        unshared=round(own + k * prefix * shape.kv_per_token),
        shared=round(own + prefix * shape.kv_per_token),
    )


def read_rate(device: str, *, size: int) -> float:
    """Return bytes a second of the fastest of some sums over ``size`` bytes on ``device``."""
    import torch

    numbers = torch.ones(size // 4, dtype=torch.float32, device=device)
    seconds = []
    for _ in range(6):  # the first one loads the kernel
        began = time.perf_counter()
        numbers.sum().item()
        seconds.append(time.perf_counter() - began)
    del numbers
    if device == "cuda":
        torch.cuda.empty_cache()  # the engine asks how much is free
    return size / min(seconds[1:])


@functools.cache
def _shape(folder: Path) -> ModelShape:
    """Return the model's sizes, which take seconds to count where there are no weights."""
    return read_shape(folder)
