"""Speculative decoding without a second model: drafts of the next tokens, looked up in the prompt.

A child repeats much of its parent, which its prompt shows. So where its last tokens stand earlier
in the same text, vLLM takes the tokens behind that place as a draft, computes the logits of all of
them in one step, and keeps as many as rejection sampling accepts (Leviathan et al. 2023,
arXiv:2211.17192, algorithm 1, with a draft of probability 1): each child follows the distribution
that it follows without drafts, though its seed gives it other tokens.

Off by default: see ``docs/log.md`` for what it gives. vLLM 0.32 can't ban a token (``logit_bias``)
while it drafts, so infills can't be had with it. On a GPU it was not run; vLLM schedules
synchronously there with this kind of draft.

Does not cover drafts by suffix trees, which need a package of their own, or by a model.
"""

from __future__ import annotations

from typing import Any

from engine.inference.environment import is_cpu_build

TOKENS = 4
"""The longest draft."""
_LONGEST, _SHORTEST = 5, 2  # of the runs of last tokens that are looked up, the longest first


def speculative_config(draft: str) -> dict[str, Any] | None:
    """Return what vLLM's engine arguments say of drafts; None for none.

    On the CPU build this repairs vLLM's sampling too, which must happen before the engine is made.

    Args:
        draft: ``none`` or ``ngram``.
    """
    if draft == "none":
        return None
    if draft != "ngram":
        raise ValueError(f"expected a draft of 'none' or 'ngram', but it was {draft!r}")
    if is_cpu_build():
        _repair_expand()
    return {
        "method": "ngram",
        "num_speculative_tokens": TOKENS,
        "prompt_lookup_max": _LONGEST,
        "prompt_lookup_min": _SHORTEST,
    }


def _repair_expand() -> None:
    """Let the CPU backend divide the logits of drafted tokens by their request's temperature.

    What stands in for a Triton kernel there writes the temperatures into a copy that is thrown
    away (vllm/utils/cpu_triton_utils.py, ``_expand_kernel_impl``), so the logits are divided by
    whatever was in memory: sampled tokens are noise, and a grammar may not allow them. A worker
    that starts takes the function that stands in that module then.
    """
    from vllm.utils import cpu_triton_utils

    cpu_triton_utils._expand_kernel_impl = _expand


def _expand(
    output: Any,
    input_val: Any,
    cu_num_tokens: Any,
    replace_from: int,
    replace_to: int,
    MAX_NUM_TOKENS: int | None = None,
) -> None:
    """Repeat each request's value for its tokens, ``replace_to`` where it is ``replace_from``.

    Args:
        output: filled; (tokens,).
        input_val: one value a request; (requests,).
        cu_num_tokens: tokens of the requests up to and with each one; (requests,).
        replace_from: a value that may not be used, such as a temperature of 0.
        replace_to: what is used instead.
        MAX_NUM_TOKENS: not used.
    """
    import torch

    counts = torch.diff(cu_num_tokens, prepend=cu_num_tokens.new_zeros(1)).long()
    values = input_val.masked_fill(input_val == replace_from, replace_to)
    output.copy_(values.repeat_interleave(counts))
