"""Attention in two passes: over what a group of rows shares, once, and over what each has alone.

``varlen`` is FlashAttention 3's ``flash_attn_varlen_func`` on a GPU; the tests give one of plain
torch. Cascade attention as in section 2.2 of arXiv:2501.01005 and in Hydragen (arXiv:2402.05099).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from engine.inference.shared_prefix.kernels import merge_kernel

Varlen = Callable[..., tuple[torch.Tensor, torch.Tensor]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pass:
    """One call of ``varlen``: sequences of queries, each over KV in blocks.

    Attributes:
        starts: shape (sequences + 1,), the first token of each.
        lengths: shape (sequences,), tokens of KV of each.
        table: shape (sequences, width), its blocks.
        longest_query: at least the tokens of the longest sequence.
        longest: at least the longest of ``lengths``.
        schedule: FlashAttention's, made ahead; None for none.
    """

    starts: torch.Tensor
    lengths: torch.Tensor
    table: torch.Tensor
    longest_query: int
    longest: int
    schedule: torch.Tensor | None = None


def shared_prefix_attention(
    *,
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    out: torch.Tensor,
    prefix: Pass,
    suffix: Pass,
    scales: Callable[[int], Mapping[str, torch.Tensor | None]],
    varlen: Varlen,
    **options: Any,
) -> None:
    """Write causal attention of a step's tokens to ``out``.

    Args:
        query: shape (tokens, heads, head_size).
        keys: shape (blocks, block_size, kv_heads, head_size).
        values: the same shape.
        out: as ``query``; no head lies across another.
        prefix: the groups, and the gaps between them with the length 0.
        suffix: the rows.
        scales: from a number of sequences to the arguments of quantized KV.
        varlen: the attention function.
        options: what both calls are given.
    """
    calls = []
    shared_out = torch.empty(query.shape, dtype=out.dtype, device=out.device)
    for each, target, causal in ((prefix, shared_out, False), (suffix, out, True)):
        calls.append(
            varlen(
                q=query,
                k=keys,
                v=values,
                out=target,
                cu_seqlens_q=each.starts,
                max_seqlen_q=each.longest_query,
                seqused_k=each.lengths,
                max_seqlen_k=each.longest,
                block_table=each.table,
                causal=causal,
                return_softmax_lse=True,
                scheduler_metadata=each.schedule,
                **scales(len(each.lengths)),
                **options,
            )
        )
    (_, shared_lse), (_, lse) = calls
    merge(out=out, lse=lse, shared_out=shared_out, shared_lse=shared_lse)


def merge(
    *, out: torch.Tensor, lse: torch.Tensor, shared_out: torch.Tensor, shared_lse: torch.Tensor
) -> None:
    """Make ``out``, attention over a part of the KV, that over both parts.

    Args:
        out: shape (tokens, heads, head_size).
        lse: natural logarithm of the sum of the exponentials, shape (heads, tokens), float32.
        shared_out: over the other part, the shape of ``out``, contiguous.
        shared_lse: the same of the other part; infinite where it has no tokens.
    """
    tokens, heads, head_size = out.shape
    merge_kernel[(tokens, heads)](
        out,
        lse,
        shared_out,
        shared_lse,
        out.stride(0),
        out.stride(1),
        lse.stride(0),
        shared_lse.stride(0),
        HEAD_SIZE=head_size,
        SIZE=1 << (head_size - 1).bit_length(),
    )
