"""How long the matrix products of a decoding step take on this CPU, in each number format.

Nearly all of a decoding step's time on a CPU is in its linear layers, and vLLM's kernels for them
differ by format: with AVX512_BF16 or AMX a CPU multiplies bfloat16 several times as fast as
float32, without them it converts every number first. So a model's own weights are multiplied by
as many rows as there are children, with the kernels that vLLM would take. Does not cover attention
and what else a step does, which differ less, or a quantised model's layers. ``bench.cpu_format``
compares what is measured here with steps of whole engines.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from safetensors import safe_open

from engine.inference import compat
from engine.settings import Dtype

ROWS = (8, 32)
"""Children that are decoded at once: those of one call of K = 8, and of four islands or K = 32."""

# All of the embedded model. Of a larger one enough to be read from memory at each pass, as all of
# it would be, and not so much that a start takes long: 1.5 GiB in both formats.
_MOST_NUMBERS = 1 << 28
_MOST_ROUNDS = 5
_FEWEST_ROUNDS = 2

Times = Mapping[Dtype, Mapping[int, Sequence[float]]]
"""CPU seconds of each pass through the layers: by format, by rows."""


def linear_times(folder: Path, *, formats: Sequence[Dtype], most_seconds: float) -> Times:
    """Measure passes through a model's linear layers, one format after the other in each round.

    Neighbouring passes meet the same other work on the machine, and this process's own CPU time
    counts, which other work disturbs least; so ratios are better known than times.

    Args:
        folder: the weights, in Hugging Face's layout.
        formats: names of torch's types.
        most_seconds: after which no further round begins; the first few are made in any case.

    Returns:
        No format at all if the folder has no matrices that can be read.

    Raises:
        SafetensorError: the weights are damaged.
        UserError: the installed vLLM is one that the engine can't use.
    """
    compat.check("engine")
    import torch
    from vllm.platforms import current_platform

    current_platform.import_kernels()
    weights = list(_matrices(folder))
    if not weights:
        return {}
    with torch.inference_mode():
        passes = {
            (name, rows): partial(_multiply, layers, inputs)
            for name in formats
            for layers in [[_layer(weight, getattr(torch, name)) for weight in weights]]
            for rows in ROWS
            for inputs in [_inputs(weights, rows, getattr(torch, name))]
        }
        return _rounds(passes, most_seconds=most_seconds)


def _rounds(
    passes: Mapping[tuple[Dtype, int], Callable[[], None]], *, most_seconds: float
) -> Times:
    """Return the seconds of each pass, after one that is not counted."""
    times: dict[Dtype, dict[int, list[float]]] = {}
    for (name, rows), run in passes.items():
        run()  # the kernels are made at the first call with this many rows
        times.setdefault(name, {})[rows] = []
    began = time.perf_counter()
    for number in range(_MOST_ROUNDS):
        if number >= _FEWEST_ROUNDS and time.perf_counter() - began > most_seconds:
            break
        for (name, rows), run in passes.items():
            started = time.process_time()
            run()
            times[name][rows].append(time.process_time() - started)
    return times


def _matrices(folder: Path) -> Iterator[Any]:
    """Yield weights of linear layers, (outputs, inputs), at most `_MOST_NUMBERS` numbers in all.

    The embedding has the shape of the output layer, and often is it, so one of both counts.
    """
    left, has_head = _MOST_NUMBERS, False
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 (it is no mapping)
                shape = file.get_slice(name).get_shape()
                is_head = "embed" in name or "head" in name
                if len(shape) != 2 or shape[0] * shape[1] > left or (is_head and has_head):
                    continue
                left -= shape[0] * shape[1]
                has_head |= is_head
                yield file.get_tensor(name)


def _layer(weight: Any, dtype: Any) -> Any:
    """Return a linear layer as vLLM has it on a CPU, with the kernel that vLLM chooses for it."""
    import torch
    from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm

    layer = torch.nn.Module()
    layer.weight = torch.nn.Parameter(weight.to(dtype, copy=True), requires_grad=False)
    layer.inputs = weight.shape[1]
    dispatch_cpu_unquantized_gemm(layer, remove_weight=True)
    return layer


def _inputs(weights: Sequence[Any], rows: int, dtype: Any) -> Mapping[int, Any]:
    """Return what is multiplied, (rows, inputs), by the number of inputs."""
    import torch

    return {
        width: torch.ones(rows, width, dtype=dtype)
        for width in {weight.shape[1] for weight in weights}
    }


def _multiply(layers: Sequence[Any], inputs: Mapping[int, Any]) -> None:
    for layer in layers:
        layer.cpu_linear(inputs[layer.inputs], layer.weight, None)
