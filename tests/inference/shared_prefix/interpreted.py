"""What the tests have done by the interpreted kernels; runs in the process of ``conftest.py``."""

import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from steps import BatchStep

from engine.inference import prepare
from engine.inference.shared_prefix.limits import Limits

Planned = dict[str, np.ndarray[Any, Any]]


def interpret() -> None:
    """Prepare the process."""
    assert "triton" not in sys.modules
    os.environ["TRITON_INTERPRET"] = "1"
    prepare(threads=1, kv_cache_gb=1)


def planner(limits: Limits, block_size: int, max_rows: int, width: int) -> Any:
    """Return a planner of the engine's."""
    from engine.inference.shared_prefix import plan

    return plan.Planner(
        limits=limits,
        block_size=block_size,
        max_rows=max_rows,
        width=width,
        device=torch.device("cpu"),
    )


def planned(planner: Any, step: BatchStep) -> Any:
    """Return the plan of a step."""
    return planner.plan(
        table=torch.from_numpy(step.tables),
        lengths=torch.from_numpy(step.lengths),
        starts=torch.from_numpy(step.starts),
    )


def plans(
    steps: Sequence[BatchStep], limits: Limits, block_size: int, max_rows: int, width: int
) -> list[Planned]:
    """Return the plans of one planner for one step after the other."""
    made = planner(limits, block_size, max_rows, width)
    found = []
    for step in steps:
        plan = planned(made, step)
        found.append({name: getattr(plan, name).numpy().copy() for name in plan.__slots__})
    return found


def addresses(
    steps: Sequence[BatchStep], limits: Limits, block_size: int, max_rows: int, width: int
) -> list[list[int]]:
    """Return where the tensors of one planner's plans lie."""
    made = planner(limits, block_size, max_rows, width)
    return [
        [getattr(plan, name).data_ptr() for name in plan.__slots__]
        for plan in (planned(made, step) for step in steps)
    ]


def merged(
    out: torch.Tensor,
    lse: torch.Tensor,
    shared_out: torch.Tensor,
    shared_lse: torch.Tensor,
    gap: int = 0,
) -> torch.Tensor:
    """Return ``out`` after the merge, done where ``gap`` numbers lie behind each head."""
    from engine.inference.shared_prefix.attention import merge

    whole = torch.full((len(out), out.shape[1], out.shape[2] + gap), torch.nan)
    view = whole[:, :, : out.shape[2]]
    view.copy_(out)  # a process's tensors are those of the other
    merge(out=view, lse=lse, shared_out=shared_out, shared_lse=shared_lse)
    assert whole[:, :, out.shape[2] :].isnan().all()
    return view.clone()


def attended(
    step: BatchStep,
    limits: Limits,
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    """Return attention of a step in two passes, with plain torch in place of FlashAttention."""
    from varlen import varlen

    from engine.inference.shared_prefix.attention import Pass, shared_prefix_attention

    plan = planned(planner(limits, keys.shape[1], 80, step.tables.shape[1]), step)
    out = torch.empty_like(query)
    longest = int(step.lengths.max())
    shared_prefix_attention(
        query=query,
        keys=keys,
        values=values,
        out=out,
        prefix=Pass(
            starts=plan.segment_starts,
            lengths=plan.segment_lengths,
            table=plan.segment_table,
            longest_query=len(query),
            longest=longest,
        ),
        suffix=Pass(
            starts=torch.from_numpy(step.starts),
            lengths=plan.row_lengths,
            table=plan.row_table,
            longest_query=int(np.diff(step.starts).max()),
            longest=longest,
        ),
        scales=lambda sequences: {},
        varlen=varlen,
        softmax_scale=query.shape[-1] ** -0.5,
    )
    return out
