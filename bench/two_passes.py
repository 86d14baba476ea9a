"""Question: from which prompt, and how many children of it, on is decoding in two passes faster?

Method, on a Hopper GPU: attention of a step in which each of ``islands`` prompts has ``k`` children
with ``own`` tokens of their own, in bfloat16, as ``engine.inference.shared_prefix`` runs it.
``layers`` layers, each with its own KV so that no cache of the GPU holds it all, are captured in a
graph: once with FlashAttention 3 over each row's whole KV, as vLLM does it (``one``), once in two
passes (``two``). The graphs are replayed in turns, and the medians are given, for a layer.
``plan`` is what a step does once for all its layers, launched as vLLM launches it: groups, tables
and FlashAttention's schedules, less the schedule that one pass needs too. Both outputs are
compared before anything is measured.

``gain_ms`` is what a step of a model with ``of`` such layers gains; below zero it loses.

Usage: python -m bench.two_passes [k=8,16,32,64] [prompts=1024,2048,4096,8192,16384] [islands=1,4]
       [own=256] [layers=8] [of=48] [heads=32] [kv_heads=4] [head_size=128] [block=64] [repeats=20]
The defaults are Qwen3-Coder-30B-A3B's. The last line printed is JSON, times in microseconds.
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.options import read_options, run_as_command
from bench.shared_prefix import whole
from engine.core import UserError
from engine.inference import prepare
from engine.inference.shared_prefix.limits import Limits

if TYPE_CHECKING:
    import torch

DEFAULTS = {
    "k": "8,16,32,64",
    "prompts": "1024,2048,4096,8192,16384",
    "islands": "1,4",
    "own": "256",
    "layers": "8",
    "of": "48",
    "heads": "32",
    "kv_heads": "4",
    "head_size": "128",
    "block": "64",
    "repeats": "20",
}
LIMITS = Limits(tokens=1, rows=2)  # whatever is shared is read together
MAX_SPLITS = 32  # vLLM's flash_attn_max_num_splits_for_cuda_graph
MOST_ROWS = 256  # of a step; islands times k above it are left out
WARM = 2  # replays that do not count
CLOSE = 0.02  # of the norm: each pass rounds to bfloat16, and so does their sum


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A layer's attention."""

    heads: int
    kv_heads: int
    head_size: int
    block: int


@dataclass(frozen=True, kw_only=True)
class Step:
    """The rows of a step, on the GPU, and the KV of each layer."""

    shape: Shape
    table: torch.Tensor
    lengths: torch.Tensor
    starts: torch.Tensor
    longest: int
    query: torch.Tensor
    keys: list[torch.Tensor]
    values: list[torch.Tensor]


def made_step(shape: Shape, *, islands: int, k: int, prompt: int, own: int, layers: int) -> Step:
    """Return a step; only whole blocks of a prompt are shared, as in vLLM."""
    import torch

    rows, length = islands * k, prompt + own
    shared, width = (prompt - 1) // shape.block, -(-length // shape.block)
    table = torch.empty((rows, width), dtype=torch.int32)
    fresh = iter(range(rows * width))
    for island in range(islands):
        of_prompt = [next(fresh) for _ in range(shared)]
        for row in range(island * k, (island + 1) * k):
            rest = [next(fresh) for _ in range(width - shared)]
            table[row] = torch.tensor(of_prompt + rest)
    blocks = next(fresh)
    chance = torch.Generator(device="cuda").manual_seed(0)

    def drawn(*size: int) -> torch.Tensor:
        return torch.randn(size, generator=chance, device="cuda", dtype=torch.bfloat16)

    of_kv = (blocks, shape.block, shape.kv_heads, shape.head_size)
    return Step(
        shape=shape,
        table=table.cuda(),
        lengths=torch.full((rows,), length, dtype=torch.int32, device="cuda"),
        starts=torch.arange(rows + 1, dtype=torch.int32, device="cuda"),
        longest=length,
        query=drawn(rows, shape.heads, shape.head_size),
        keys=[drawn(*of_kv) for _ in range(layers)],
        values=[drawn(*of_kv) for _ in range(layers)],
    )


def schedule(step: Step, *, starts: Any, lengths: Any, longest_query: int, causal: bool) -> Any:
    """Return FlashAttention's schedule of a pass, made as vLLM makes it."""
    from vllm.v1.attention.backends.flash_attn import get_scheduler_metadata

    return get_scheduler_metadata(
        batch_size=len(lengths),
        max_seqlen_q=longest_query,
        max_seqlen_k=step.longest,
        num_heads_q=step.shape.heads,
        num_heads_kv=step.shape.kv_heads,
        headdim=step.shape.head_size,
        cache_seqlens=lengths,
        qkv_dtype=step.query.dtype,
        cu_seqlens_q=starts,
        page_size=step.shape.block,
        causal=causal,
        window_size=(-1, -1),
        num_splits=MAX_SPLITS,
    )


def one_pass(step: Step) -> tuple[Callable[[], Any], Callable[[Any, int, Any], None]]:
    """Return what a step does once, and what it does for a layer, in one pass."""
    from vllm.v1.attention.backends.flash_attn import flash_attn_varlen_func

    def plan() -> Any:
        return schedule(
            step, starts=step.starts, lengths=step.lengths, longest_query=1, causal=True
        )

    def attend(planned: Any, layer: int, out: Any) -> None:
        flash_attn_varlen_func(
            q=step.query,
            k=step.keys[layer],
            v=step.values[layer],
            out=out,
            cu_seqlens_q=step.starts,
            max_seqlen_q=1,
            seqused_k=step.lengths,
            max_seqlen_k=step.longest,
            block_table=step.table,
            causal=True,
            softmax_scale=step.shape.head_size**-0.5,
            scheduler_metadata=planned,
            fa_version=3,
            num_splits=MAX_SPLITS,
        )

    return plan, attend


def two_passes(step: Step) -> tuple[Callable[[], Any], Callable[[Any, int, Any], None]]:
    """Return the same in two passes."""
    from vllm.v1.attention.backends.flash_attn import flash_attn_varlen_func

    from engine.inference.shared_prefix.attention import Pass, shared_prefix_attention
    from engine.inference.shared_prefix.plan import Planner

    planner = Planner(
        limits=LIMITS,
        block_size=step.shape.block,
        max_rows=MOST_ROWS,
        width=step.table.shape[1],
        device=step.table.device,
    )
    rows = len(step.lengths)

    def passed(*, starts: Any, lengths: Any, table: Any, longest_query: int, causal: bool) -> Pass:
        return Pass(
            starts=starts,
            lengths=lengths,
            table=table,
            longest_query=longest_query,
            longest=step.longest,
            schedule=schedule(
                step, starts=starts, lengths=lengths, longest_query=longest_query, causal=causal
            ),
        )

    def plan() -> tuple[Pass, Pass]:
        found = planner.plan(table=step.table, lengths=step.lengths, starts=step.starts)
        return passed(
            starts=found.segment_starts,
            lengths=found.segment_lengths,
            table=found.segment_table,
            longest_query=rows,
            causal=False,
        ), passed(
            starts=step.starts,
            lengths=found.row_lengths,
            table=found.row_table,
            longest_query=1,
            causal=True,
        )

    def attend(planned: Any, layer: int, out: Any) -> None:
        prefix, suffix = planned
        shared_prefix_attention(
            query=step.query,
            keys=step.keys[layer],
            values=step.values[layer],
            out=out,
            prefix=prefix,
            suffix=suffix,
            scales=lambda sequences: {},
            varlen=flash_attn_varlen_func,
            softmax_scale=step.shape.head_size**-0.5,
            fa_version=3,
            num_splits=MAX_SPLITS,
        )

    return plan, attend


def captured(plan: Callable[[], Any], attend: Callable[..., None], out: Any, layers: int) -> Any:
    """Return a graph of all layers, and what it reads, which has to stay."""
    import torch

    planned = plan()
    attend(planned, 0, out)  # compiles what is not compiled yet
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for layer in range(layers):
            attend(planned, layer, out)
    return graph, planned


def microseconds(act: Callable[[], Any]) -> float:
    """Return how long the GPU is busy, or waits for a launch, from the first to the last kernel."""
    import torch

    began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    began.record()
    act()
    ended.record()
    ended.synchronize()
    return 1e3 * float(began.elapsed_time(ended))


def cell(step: Step, *, layers: int, of: int, repeats: int) -> dict[str, float]:
    """Return the figures of a step.

    Raises:
        RuntimeError: the two outputs differ by more than roundings.
    """
    import torch

    ways = {"one": one_pass(step), "two": two_passes(step)}
    outs = {name: torch.full_like(step.query, torch.nan) for name in ways}
    graphs = {name: captured(*way, outs[name], layers) for name, way in ways.items()}
    for graph, _ in graphs.values():
        graph.replay()
    torch.cuda.synchronize()
    apart = float((outs["one"] - outs["two"]).float().norm() / outs["one"].float().norm())
    if not apart <= CLOSE:
        raise RuntimeError(f"the outputs of one and of two passes differ by {apart} of their norm")
    spent: dict[str, list[float]] = {"one": [], "two": [], "plan_one": [], "plan_two": []}
    for _ in range(repeats):
        for name, (make_plan, _) in ways.items():
            spent[name].append(microseconds(graphs[name][0].replay) / layers)
            spent[f"plan_{name}"].append(microseconds(make_plan))
    one, two, plan_one, plan_two = (statistics.median(each[WARM:]) for each in spent.values())
    plan = plan_two - plan_one
    return {
        "one": round(one, 1),
        "two": round(two, 1),
        "plan": round(plan, 1),
        "gain_ms": round((of * (one - two) - plan) / 1e3, 3),
    }


def main(arguments: list[str]) -> None:
    """Print the figures, a line for each step, and then all of them as JSON.

    Raises:
        UserError: there is no Hopper GPU, or an option is no number.
    """
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    single = {name: whole(options, name)[0] for name in ("own", "layers", "of", "repeats")}
    shape = Shape(
        **{name: whole(options, name)[0] for name in ("heads", "kv_heads", "head_size", "block")}
    )
    islands, prompts, ks = (whole(options, name) for name in ("islands", "prompts", "k"))
    if single["repeats"] <= WARM:
        raise UserError(f"repeats={single['repeats']} must be above {WARM}")
    if shape.heads % shape.kv_heads:
        raise UserError(f"heads={shape.heads} is no multiple of kv_heads={shape.kv_heads}")
    prepare(threads=1, kv_cache_gb=1)
    import torch

    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        raise UserError("it needs a Hopper GPU")
    steps = []
    for count, prompt, k in itertools.product(islands, prompts, ks):
        if count * k > MOST_ROWS:
            continue
        step = made_step(
            shape, islands=count, k=k, prompt=prompt, own=single["own"], layers=single["layers"]
        )
        figures = cell(step, layers=single["layers"], of=single["of"], repeats=single["repeats"])
        steps.append({"islands": count, "prompt": prompt, "k": k, **figures})
        sys.stdout.write(f"{steps[-1]}\n")
        sys.stdout.flush()
    gpu = torch.cuda.get_device_name()
    sys.stdout.write(json.dumps({"options": options, "gpu": gpu, "steps": steps}) + "\n")


if __name__ == "__main__":
    run_as_command(main)
