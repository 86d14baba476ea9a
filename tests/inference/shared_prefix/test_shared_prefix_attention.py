"""Attention in two passes is attention: against NumPy, in float64, over each row's whole KV."""

import math
import random
from concurrent.futures import Executor
from dataclasses import replace

import interpreted
import numpy as np
import pytest
import torch
from steps import BatchStep, batch_step

from engine.inference import is_cpu_build
from engine.inference.shared_prefix import reference
from engine.inference.shared_prefix.limits import Limits

BLOCK = 16
LIMITS = Limits(tokens=64, rows=3)
HEAD_SIZE = 24  # no power of two
BF16 = 2.0**-8
"""Relative spacing of bfloat16."""


def attended(
    interpreter: Executor, step: BatchStep, *, kv_heads: int, share: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return attention of a step in two passes, and as the reference has it."""
    chance = torch.Generator().manual_seed(seed)
    named, at = np.unique(step.tables, return_inverse=True)  # so that few blocks are made
    step = replace(step, tables=at.reshape(step.tables.shape).astype(np.int32))
    shape = (len(named), BLOCK, kv_heads, HEAD_SIZE)
    keys, values = (torch.randn(shape, generator=chance).bfloat16() for _ in range(2))
    tokens = int(step.starts[-1])
    query = torch.randn((tokens, kv_heads * share, HEAD_SIZE), generator=chance).bfloat16()
    found = interpreter.submit(interpreted.attended, step, LIMITS, query, keys, values).result()
    wanted = reference.attention(
        query=query.double().numpy(),
        keys=keys.double().numpy(),
        values=values.double().numpy(),
        tables=step.tables,
        lengths=step.lengths,
        starts=step.starts,
        scale=HEAD_SIZE**-0.5,
    )
    return found.double().numpy(), wanted


def assert_close(found: np.ndarray, wanted: np.ndarray) -> None:
    """Assert that both differ by roundings to bfloat16: of each part, and of their sum."""
    assert np.isfinite(found).all()
    assert np.abs(found - wanted).max() <= 2 * BF16 * max(1.0, np.abs(wanted).max())


@pytest.mark.parametrize("share", range(1, 9))
def test_each_number_of_heads_to_a_kv_head(interpreter: Executor, share: int) -> None:
    step = batch_step(
        random.Random(share),
        groups=[5, 1, 4],
        shared=(4, 8),
        own=(1, 40),
        block_size=BLOCK,
        width=20,
    )
    assert [bool(each.blocks) for each in step.segments(LIMITS, BLOCK)] == [True, False, True]
    assert_close(*attended(interpreter, step, kv_heads=2, share=share))


@pytest.mark.parametrize("size", [1, 2, 3, 16, 64])
def test_groups_of_each_size(interpreter: Executor, size: int) -> None:
    step = batch_step(
        random.Random(size), groups=[size], shared=(5, 5), own=(1, 90), block_size=BLOCK, width=20
    )
    assert bool(step.segments(LIMITS, BLOCK)[0].blocks) == (size >= LIMITS.rows)
    assert_close(*attended(interpreter, step, kv_heads=1, share=2))


@pytest.mark.parametrize("seed", range(6))
def test_islands_ragged_suffixes_and_rows_in_any_order(interpreter: Executor, seed: int) -> None:
    chance = random.Random(seed)
    step = batch_step(
        chance,
        groups=[chance.choice((1, 2, 5, 8)) for _ in range(4)],
        shared=(0, 12),
        own=(1, 60),
        block_size=BLOCK,
        width=24,
        task=chance.choice((0, 5)),
        queries=(1, 1) if seed % 2 else (1, 30),  # decoding, or some with the tail of a prompt
        reorder=seed >= 3,
    )
    assert_close(*attended(interpreter, step, kv_heads=2, share=4, seed=seed))


def test_a_step_without_a_group(interpreter: Executor) -> None:
    step = batch_step(
        random.Random(0), groups=[1] * 7, shared=(0, 3), own=(1, 60), block_size=BLOCK, width=20
    )
    assert_close(*attended(interpreter, step, kv_heads=2, share=2))


# The merge alone.


def parts(tokens: int = 5, heads: int = 3) -> tuple[torch.Tensor, ...]:
    """Return both parts of an attention: ``out``, ``lse``, ``shared_out``, ``shared_lse``."""
    chance = torch.Generator().manual_seed(0)
    shape = (tokens, heads, HEAD_SIZE)
    out, shared_out = (torch.randn(shape, generator=chance) for _ in range(2))
    lse, shared_lse = (4 * torch.randn((heads, tokens), generator=chance) for _ in range(2))
    return out, lse, shared_out, shared_lse


@pytest.mark.skipif(not is_cpu_build(), reason="vLLM for GPUs merges on a GPU")
def test_the_merge_is_that_of_vllm(interpreter: Executor) -> None:
    from vllm.v1.attention.ops.merge_attn_states import merge_attn_states

    out, lse, shared_out, shared_lse = parts()
    shared_lse[0, 2] = -torch.inf
    shared_lse[1, 3] = torch.inf  # of FlashAttention 2, where there is no KV
    lse[2, 1], shared_lse[2, 1] = 1000.0, -1000.0
    lse[2, 2], shared_lse[2, 2] = -1000.0, 1000.0
    wanted = torch.empty_like(out)
    merge_attn_states(wanted, shared_out, shared_lse, out, lse)
    found = interpreter.submit(interpreted.merged, out, lse, shared_out, shared_lse).result()
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


def test_equal_parts_have_equal_weight(interpreter: Executor) -> None:
    out, lse, shared_out, _ = parts()
    found = interpreter.submit(interpreted.merged, out, lse, shared_out, lse).result()
    torch.testing.assert_close(found, (out + shared_out) / 2)
    once = interpreter.submit(interpreted.merged, out, lse, shared_out, lse + math.log(3)).result()
    torch.testing.assert_close(once, (out + 3 * shared_out) / 4)


def test_where_nothing_is_shared_the_output_is_not_touched(interpreter: Executor) -> None:
    out, lse, shared_out, shared_lse = parts()
    shared_out[:] = torch.nan
    shared_lse[:] = -torch.inf
    found = interpreter.submit(interpreted.merged, out, lse, shared_out, shared_lse).result()
    assert torch.equal(found, out)


def test_heads_that_do_not_lie_side_by_side(interpreter: Executor) -> None:
    """vLLM's output may be a view with other strides than its shape's."""
    found, wanted = (
        interpreter.submit(interpreted.merged, *parts(), gap).result() for gap in (8, 0)
    )
    assert torch.equal(found, wanted)
