"""Groups of layers with KV or state, as vLLM makes them of the models that a GPU is for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class KVLayout:
    """The groups of layers that have one block table each, as vLLM makes them of a model.

    Attributes:
        groups: `KVCacheGroupSpec`s; the first is of attention layers.
        block_size: tokens of an attention block.
        match_unit: tokens of a block hash; None for what vLLM derives.
        state_mode: vLLM's ``mamba_cache_mode``.
    """

    groups: tuple[Any, ...]
    block_size: int
    match_unit: int | None = None
    state_mode: str = "none"


def full_attention(
    *, block_size: int = 64, layers: int = 48, kv_heads: int = 4, head_size: int = 128
) -> KVLayout:
    """Return the layout of a model with full attention only; by default Qwen3-Coder-30B-A3B's."""
    return KVLayout(
        groups=(_attention(block_size, layers, kv_heads, head_size),), block_size=block_size
    )


def hybrid(
    *,
    block_size: int = 784,
    match_unit: int | None = None,
    layers: int = 16,
    kv_heads: int = 4,
    head_size: int = 256,
    state_groups: int = 3,
    state_shapes: Sequence[tuple[int, ...]] = ((3, 10240), (48, 128, 128)),
) -> KVLayout:
    """Return the layout of a model with layers of state; by default Qwen3.5-27B's.

    Args:
        block_size: as vLLM aligns it after loading, so that a block of attention is no smaller
            than a state.
        match_unit: ``prefix_match_unit``.
        layers: attention layers; each group of state layers has as many.
        kv_heads: of an attention layer.
        head_size: of an attention layer.
        state_groups: how many groups of layers with state there are.
        state_shapes: of a layer's convolution (bfloat16) and recurrence (float32).
    """
    import torch
    from vllm.v1.kv_cache_interface import KVCacheGroupSpec, MambaSpec

    attention = _attention(block_size, layers, kv_heads, head_size)
    state = MambaSpec(
        block_size=block_size,
        shapes=tuple(state_shapes),
        dtypes=(torch.bfloat16, torch.float32),
        page_size_padded=attention.kv_cache_spec.page_size_bytes,
        mamba_cache_mode="align",
    )
    states = [
        KVCacheGroupSpec([f"state{group}.{layer}" for layer in range(layers)], state)
        for group in range(state_groups)
    ]
    return KVLayout(
        groups=(attention, *states),
        block_size=block_size,
        match_unit=match_unit,
        state_mode="align",
    )


def _attention(block_size: int, layers: int, kv_heads: int, head_size: int) -> Any:
    import torch
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheGroupSpec

    return KVCacheGroupSpec(
        [f"attention.{layer}" for layer in range(layers)],
        FullAttentionSpec(
            block_size=block_size,
            num_kv_heads=kv_heads,
            head_size=head_size,
            dtype=torch.bfloat16,
        ),
    )
