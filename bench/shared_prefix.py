"""Question: how much KV does a step of decoding read, against the least that it must?

Method: a count; nothing is measured. The rows of a step, ``k`` children of each of ``islands``
calls, get block tables as vLLM's block pool makes them, and ``engine.inference.shared_prefix`` says
which rows share which blocks. Counted is what attention of all layers reads: KV, queries, and for
two passes the queries again and both parts that are merged. Averaged over a prompt's last block,
from empty to full, and over the steps of an answer.

The floor is a prompt's KV once for all its children, each child's own KV and queries once. vLLM
alone (``unshared``) reads the prompt once a child. Two things are assumed to come from the L2 cache
and are not in ``over_floor``, but are in ``over_floor_no_cache``: a prompt that is read again for
each 128 queries of a KV head, which FlashAttention 3 does at the same time, and the partial results
of a long prompt that is split over all SMs, while those of a layer fit into the cache.

Weights and activations are not counted. Nothing says how long a step takes.

Usage: python -m bench.shared_prefix [k=8,32,64] [prompts=2048,8192,16384] [islands=1] [answer=512]
       [block=64] [layers=48] [heads=32] [kv_heads=4] [head_size=128]
The defaults are Qwen3-Coder-30B-A3B's, in bfloat16. The last line printed is JSON.
"""

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from bench.options import number, read_options, run_as_command
from engine.core import UserError
from engine.inference.shared_prefix.limits import Limits
from engine.inference.shared_prefix.reference import Segment, common_blocks, segments

DEFAULTS = {
    "k": "8,32,64",
    "prompts": "2048,8192,16384",
    "islands": "1",
    "answer": "512",
    "block": "64",
    "layers": "48",
    "heads": "32",
    "kv_heads": "4",
    "head_size": "128",
}
LIMITS = Limits()
NUMBER = 2  # bytes of a bfloat16
PARTIAL = 4  # and of a partial result
SMS = 132  # of an H100
L2 = 50 * 10**6
QUERIES = 128
"""Queries of one KV head that FlashAttention 3 takes together: heads of a token count singly."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A model's attention."""

    layers: int
    heads: int
    kv_heads: int
    head_size: int

    @property
    def kv(self) -> int:
        """Bytes of a token's keys and values in a layer."""
        return 2 * NUMBER * self.kv_heads * self.head_size

    @property
    def query(self) -> int:
        """Bytes of a token's queries in a layer, which are as many as of its output."""
        return NUMBER * self.heads * self.head_size


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The rows of a step: ``k`` children of each of ``islands`` prompts.

    Attributes:
        prompt: its tokens.
        own: tokens that each child has generated.
        block: tokens of a block.
    """

    islands: int
    k: int
    prompt: int
    own: int
    block: int

    @property
    def rows(self) -> int:
        return self.islands * self.k

    def segments(self) -> list[Segment]:
        """Return the groups of the rows."""
        length = self.prompt + self.own
        whole = self.prompt // self.block
        fresh = iter(range(1, 1 << 31))
        tables = []
        for _ in range(self.islands):
            shared = [next(fresh) for _ in range(whole)]
            rest = -(-length // self.block) - whole
            tables += [shared + [next(fresh) for _ in range(rest)] for _ in range(self.k)]
        common = common_blocks(
            tables=np.array(tables, np.int32),
            lengths=np.full(self.rows, length, np.int32),
            starts=np.arange(self.rows + 1, dtype=np.int32),
            block_size=self.block,
        )
        return segments(common, blocks=LIMITS.blocks(self.block), rows=LIMITS.rows)


@dataclass(frozen=True, kw_only=True)
class Bytes:
    """What attention of all layers reads in a step.

    Attributes:
        floor: the least.
        unshared: in one pass, each row over all of its KV.
        shared: in two passes, from memory.
        no_cache: the same if nothing came from the L2 cache.
    """

    floor: float
    unshared: float
    shared: float
    no_cache: float


def step_bytes(shape: Shape, batch: Batch) -> Bytes:
    """Count a step."""
    rows, length = batch.rows, batch.prompt + batch.own
    once = rows * shape.query
    floor = (batch.islands * batch.prompt + rows * batch.own) * shape.kv + once
    unshared = rows * length * shape.kv + once
    is_split = rows >= LIMITS.step  # the shape of a step decides, not its groups
    groups = [each for each in batch.segments() if each.blocks] if is_split else []
    kv = rows * length * shape.kv
    again = merged = partial = 0
    for each in groups:
        count, tokens = each.end - each.first, each.blocks * batch.block
        kv -= (count - 1) * tokens * shape.kv
        tiles = math.ceil(count * shape.heads / shape.kv_heads / QUERIES)
        again += (tiles - 1) * tokens * shape.kv
        splits = max(1, SMS // (tiles * shape.kv_heads * len(groups)))
        if splits > 1:
            partial += splits * count * shape.heads * (shape.head_size + 1) * PARTIAL
        # Both parts, and the logarithms of their sums.
        merged += 2 * count * (shape.query + shape.heads * PARTIAL)
    shared = kv + (2 if is_split else 1) * once + merged
    spilt = partial if partial > L2 else 0
    return Bytes(
        floor=shape.layers * floor,
        unshared=shape.layers * unshared,
        shared=shape.layers * (shared + spilt),
        no_cache=shape.layers * (shared + again + partial),
    )


def mean_bytes(
    shape: Shape, *, islands: int, k: int, prompt: int, answer: int, block: int
) -> Bytes:
    """Return the mean over the steps of an answer, and over how full a prompt's last block is."""
    counted = [
        asdict(
            step_bytes(
                shape, Batch(islands=islands, k=k, prompt=prompt + tail, own=own, block=block)
            )
        )
        for tail in (0, block - 1)
        for own in (1, answer)  # linear in both
    ]
    return Bytes(**{name: sum(each[name] for each in counted) / 4 for name in counted[0]})


def figures(counted: Bytes) -> dict[str, float]:
    """Return what is printed of a mean."""
    return {
        "floor_gb": round(counted.floor / 1e9, 3),
        "unshared_gb": round(counted.unshared / 1e9, 3),
        "shared_gb": round(counted.shared / 1e9, 3),
        "unshared_over_floor": round(counted.unshared / counted.floor, 2),
        "over_floor": round(counted.shared / counted.floor, 3),
        "over_floor_no_cache": round(counted.no_cache / counted.floor, 3),
    }


def whole(options: Mapping[str, str], key: str) -> list[int]:
    """Return an option's whole numbers.

    Raises:
        UserError: one is none, or below 1.
    """
    found = []
    for each in options[key].split(","):
        value = number({key: each}, key)
        if value != int(value):
            raise UserError(f"{key}={each} is no whole number")
        found.append(int(value))
    return found


def main(arguments: list[str]) -> None:
    """Print the counts, one line each, and then all of them as JSON."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    names = ("layers", "heads", "kv_heads", "head_size", "islands", "answer", "block")
    single = {name: whole(options, name)[0] for name in names}
    shape = Shape(**{name: single[name] for name in names[:4]})
    if shape.heads % shape.kv_heads:
        raise UserError(f"heads={shape.heads} is no multiple of kv_heads={shape.kv_heads}")
    steps = []
    for prompt in whole(options, "prompts"):
        for k in whole(options, "k"):
            counted = mean_bytes(
                shape,
                islands=single["islands"],
                k=k,
                prompt=prompt,
                answer=single["answer"],
                block=single["block"],
            )
            steps.append({"prompt": prompt, "k": k, **figures(counted)})
            sys.stdout.write(f"{steps[-1]}\n")
    sys.stdout.write(json.dumps({"options": options, "steps": steps}) + "\n")


if __name__ == "__main__":
    run_as_command(main)
