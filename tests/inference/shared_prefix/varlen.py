"""FlashAttention's varlen function over KV in blocks, in plain torch: slow, exact, for the CPU."""

from typing import Any

import torch


def varlen(
    *,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    max_seqlen_q: int,
    seqused_k: torch.Tensor,
    max_seqlen_k: int,
    block_table: torch.Tensor,
    causal: bool,
    softmax_scale: float,
    return_softmax_lse: bool,
    **ignored: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return attention of each sequence's queries to its KV, and the log-sum-exp (heads, tokens).

    Scores in float32. A causal mask ends with the last token. A sequence without KV gets zeros and
    minus infinity, as of FlashAttention 3; a token of no sequence gets what was there: here NaN.
    """
    tokens, heads, _ = q.shape
    block_size, kv_heads = k.shape[1:3]
    lse = torch.full((heads, tokens), torch.nan)
    out[:] = torch.nan
    assert return_softmax_lse and len(cu_seqlens_q) == len(seqused_k) + 1 == len(block_table) + 1
    for sequence, length in enumerate(seqused_k.tolist()):
        first, end = cu_seqlens_q[sequence : sequence + 2].tolist()
        assert 0 <= first <= end <= tokens and end - first <= max_seqlen_q
        assert 0 <= length <= max_seqlen_k
        if end == first:
            continue
        table = block_table[sequence, : -(-length // block_size)].long()
        keys, values = (
            each[table]
            .reshape(-1, *each.shape[2:])[:length]
            .float()
            .repeat_interleave(heads // kv_heads, dim=1)
            for each in (k, v)
        )
        scores = softmax_scale * torch.einsum("qhd,khd->hqk", q[first:end].float(), keys)
        if causal:
            last = torch.arange(length - (end - first), length)
            scores.masked_fill_(torch.arange(length) > last[:, None], -torch.inf)
        lse[:, first:end] = scores.logsumexp(dim=-1)
        weights = torch.softmax(scores, dim=-1) if length else scores
        out[first:end] = torch.einsum("hqk,khd->qhd", weights, values).to(out.dtype)
    return out, lse
