"""Attention in two passes on a GPU: FlashAttention 3 itself, and the kernels as compiled."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from steps import BatchStep, batch_step

from engine.inference.shared_prefix import reference
from engine.inference.shared_prefix.limits import Limits

BLOCK = 64
LIMITS = Limits()
WIDTH = 64
MOST_ROWS = 80
BF16 = 2.0**-8
"""Relative spacing of bfloat16."""

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0),
    reason="FlashAttention 3 runs on Hopper GPUs alone",
)


class Attention:
    """Attention of steps with the same number of rows, one after the other, in the same buffers."""

    def __init__(self, *steps: BatchStep, kv_heads: int, share: int, head_size: int) -> None:
        """Make the KV that the steps name, and plan the first one."""
        from engine.inference.shared_prefix.plan import Planner

        step = steps[0]
        self._named = np.unique(np.concatenate([each.tables for each in steps]))
        chance = torch.Generator(device="cuda").manual_seed(0)

        def drawn(*shape: int) -> torch.Tensor:
            return torch.randn(shape, generator=chance, device="cuda").bfloat16()

        self._keys, self._values = (
            drawn(len(self._named), BLOCK, kv_heads, head_size) for _ in range(2)
        )
        self._query = drawn(int(step.starts[-1]), kv_heads * share, head_size)
        self._out = torch.full_like(self._query, torch.nan)
        self._scale = head_size**-0.5
        self._planner = Planner(
            limits=LIMITS,
            block_size=BLOCK,
            max_rows=MOST_ROWS,
            width=step.tables.shape[1],
            device=torch.device("cuda"),
        )
        self._starts = torch.zeros(len(step.starts), dtype=torch.int32, device="cuda")
        self.plan(step)

    def plan(self, step: BatchStep) -> None:
        """Plan a step of as many rows and tokens as the first one."""
        assert step.starts[-1] == len(self._query) and len(step.starts) == len(self._starts)
        self._out.fill_(torch.nan)
        self._step = step
        self._tables = np.searchsorted(self._named, step.tables).astype(np.int32)
        self._starts.copy_(torch.from_numpy(step.starts))
        self._plan = self._planner.plan(
            table=torch.from_numpy(self._tables).cuda(),
            lengths=torch.from_numpy(step.lengths).cuda(),
            starts=self._starts,
        )

    def run(self) -> None:
        """Write ``out``."""
        from vllm.v1.attention.backends.flash_attn import flash_attn_varlen_func

        from engine.inference.shared_prefix.attention import Pass, shared_prefix_attention

        longest = WIDTH * BLOCK
        shared_prefix_attention(
            query=self._query,
            keys=self._keys,
            values=self._values,
            out=self._out,
            prefix=Pass(
                starts=self._plan.segment_starts,
                lengths=self._plan.segment_lengths,
                table=self._plan.segment_table,
                longest_query=len(self._query),
                longest=longest,
            ),
            suffix=Pass(
                starts=self._starts,
                lengths=self._plan.row_lengths,
                table=self._plan.row_table,
                longest_query=int(np.diff(self._step.starts).max()),
                longest=longest,
            ),
            scales=lambda sequences: {},
            varlen=flash_attn_varlen_func,
            softmax_scale=self._scale,
            softcap=0.0,
            fa_version=3,
        )

    def captured(self) -> Any:
        """Return the same as a graph."""
        self.run()  # compiles what is not compiled yet
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.run()
        return graph

    def assert_right(self) -> None:
        """Assert that ``out`` differs from the reference by roundings to bfloat16."""
        wanted = reference.attention(
            query=self._query.double().cpu().numpy(),
            keys=self._keys.double().cpu().numpy(),
            values=self._values.double().cpu().numpy(),
            tables=self._tables,
            lengths=self._step.lengths,
            starts=self._step.starts,
            scale=self._scale,
        )
        found = self._out.double().cpu().numpy()
        assert np.isfinite(found).all()
        assert np.abs(found - wanted).max() <= 2 * BF16 * max(1.0, np.abs(wanted).max())


def decoding(seed: int, groups: list[int], **options: Any) -> BatchStep:
    """Return a step whose groups share 2,048 tokens or more."""
    wanted = {"shared": (32, 40), "own": (1, 700), "block_size": BLOCK, "width": WIDTH}
    return batch_step(random.Random(seed), groups=groups, **(wanted | options))


@pytest.mark.parametrize("head_size", [64, 128])
@pytest.mark.parametrize(("kv_heads", "share"), [(1, 1), (3, 3), (4, 8)])
def test_two_passes_are_attention(head_size: int, kv_heads: int, share: int) -> None:
    step = decoding(0, [8, 1, 20])
    assert [bool(each.blocks) for each in step.segments(LIMITS, BLOCK)] == [True, False, True]
    attention = Attention(step, kv_heads=kv_heads, share=share, head_size=head_size)
    attention.run()
    attention.assert_right()


@pytest.mark.parametrize("seed", range(4))
def test_tails_of_prompts_and_rows_in_any_order(seed: int) -> None:
    step = decoding(
        seed, [8, 16, 3], shared=(28, 40), queries=(1, 40), task=4 * (seed % 2), reorder=seed >= 2
    )
    attention = Attention(step, kv_heads=4, share=8, head_size=128)
    attention.run()
    attention.assert_right()


def test_a_graph_reads_the_plan_of_the_next_step() -> None:
    """Other groups, other lengths, and none at all: what was captured follows the buffers."""
    steps = [decoding(1, [8, 1, 20]), decoding(1, [20, 9]), decoding(1, [1] * 29, shared=(0, 3))]
    attention = Attention(*steps, kv_heads=4, share=8, head_size=128)
    graph = attention.captured()
    for step in steps:
        attention.plan(step)
        graph.replay()
        torch.cuda.synchronize()
        attention.assert_right()
