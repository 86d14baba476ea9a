"""vLLM's attention layers, configuration and metadata, made on a CPU without a model."""

from pathlib import Path
from typing import Any

import torch
from simulated import SimulatedEngine, full_attention
from steps import BatchStep

from engine.inference.shared_prefix.limits import Limits

BLOCK = 16
HEADS = 8
KV_HEADS = 2
HEAD_SIZE = 32


def engine_config(folder: Path) -> Any:
    """Return vLLM's configuration for at most 64 rows in a step."""
    layout = full_attention(block_size=BLOCK)
    return SimulatedEngine(folder=folder, layout=layout, blocks=100, max_num_seqs=64).config


def impl(*, version: int | None = 3, **options: Any) -> Any:
    """Return a layer's attention, as on a GPU with FlashAttention of a ``version``."""
    from engine.inference.shared_prefix.backend import Impl

    wanted = {"alibi_slopes": None, "sliding_window": None, **options}
    made = Impl(HEADS, HEAD_SIZE, HEAD_SIZE**-0.5, KV_HEADS, kv_cache_dtype="auto", **wanted)
    made.vllm_flash_attn_version = version
    return made


def layer(of: Any) -> Any:
    """Return a layer of vLLM's, of which there is nothing but its attention."""
    from vllm.model_executor.layers.attention import Attention

    class Layer(Attention):  # type: ignore[misc]
        def __init__(self) -> None:
            torch.nn.Module.__init__(self)
            self.impl = of
            self._q_scale = self._k_scale = self._v_scale = torch.ones(1)

    return Layer()


def builder(config: Any, *impls: Any, limits: Limits | None = None, spec: Any = None) -> Any:
    """Return the maker of metadata for layers with such attention."""
    from vllm.v1.kv_cache_interface import FullAttentionSpec

    from engine.inference.shared_prefix import backend

    names = [f"layer{index}" for index in range(len(impls))]
    config.compilation_config.static_forward_context = {
        name: layer(each) for name, each in zip(names, impls, strict=True)
    }
    spec = spec or FullAttentionSpec(
        block_size=BLOCK, num_kv_heads=KV_HEADS, head_size=HEAD_SIZE, dtype=torch.bfloat16
    )
    made = backend.Builder(spec, names, config, torch.device("cpu"))
    if limits is not None:
        made.limits = limits
    return made


def common(step: BatchStep, **changes: Any) -> Any:
    """Return what vLLM says of a step to all its attention backends."""
    from vllm.v1.attention.backend import CommonAttentionMetadata

    starts = torch.from_numpy(step.starts)
    known: dict[str, Any] = {
        "query_start_loc": starts,
        "query_start_loc_cpu": starts,
        "seq_lens": torch.from_numpy(step.lengths),
        "num_reqs": len(step.lengths),
        "num_actual_tokens": int(step.starts[-1]),
        "max_query_len": int((step.starts[1:] - step.starts[:-1]).max()),
        "max_seq_len": int(step.lengths.max()),
        "block_table_tensor": torch.from_numpy(step.tables),
        "slot_mapping": torch.zeros(int(step.starts[-1]), dtype=torch.int64),
    }
    return CommonAttentionMetadata(**{**known, **changes})


def forward(
    folder: Path, step: BatchStep, limits: Limits, query: torch.Tensor, cache: torch.Tensor
) -> tuple[bool, torch.Tensor]:
    """Return whether a step is in two passes, and the attention that a layer writes for it.

    ``cache`` has vLLM's shape: (blocks, kv_heads, block_size, 2 head_size). ``query`` may have
    tokens of no row at its end, as in a graph.
    """
    from varlen import varlen

    attention = impl()
    attention.varlen = lambda: varlen
    made = builder(engine_config(folder), attention, limits=limits)
    metadata = made.build(0, common(step, num_actual_tokens=len(query)))
    out = torch.empty_like(query)
    attention.forward(layer(attention), query, query, query, cache, metadata, out)
    return metadata.prefix is not None, out
