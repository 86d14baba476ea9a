"""NumPy reference of decode over a shared prefix: which rows share blocks, and what attention is.

The kernels (``kernels.py``) are held against it. Rows are the requests of a step in the order of
the batch; row r computes the tokens ``starts[r]`` to ``starts[r + 1]``, which are the last ones of
its ``lengths[r]``. Its KV lies in the blocks ``tables[r]``, a table padded on the right.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """Adjacent rows ``first`` to ``end`` - 1, and how many leading blocks all of them share.

    Rows that are in no group are a segment with 0 blocks.
    """

    first: int
    end: int
    blocks: int


def common_blocks(*, tables: Ints, lengths: Ints, starts: Ints, block_size: int) -> list[int]:
    """Return for each row how many leading blocks it shares with the row before.

    Only blocks count that were full before the step in both rows, so that every token of the step
    comes after all of them. Row 0 has none.

    Args:
        tables: shape (rows, width).
        lengths: shape (rows,), tokens of each row with those of this step.
        starts: shape (rows + 1,).
        block_size: tokens of a block.
    """
    full = (lengths - np.diff(starts)) // block_size
    found = [0] * min(1, len(tables))
    for row in range(1, len(tables)):
        limit = min(full[row - 1], full[row])
        differs = np.flatnonzero(tables[row, :limit] != tables[row - 1, :limit])
        found.append(int(differs[0]) if len(differs) else int(limit))
    return found


def segments(common: list[int], *, blocks: int, rows: int) -> list[Segment]:
    """Return the groups that save the most reads, with what lies between them.

    A group of n rows that share b blocks saves (n - 1) b reads of a block. Of equal ones the rows
    that come first are in the larger group.

    Args:
        common: for each row, the blocks shared with the row before (`common_blocks`).
        blocks: the fewest that a group shares; at least 1.
        rows: the fewest that a group has; at least 2.
    """
    count = len(common)
    best = [(0, count)] * (count + 1)  # reads saved from this row on; end of its group
    for first in reversed(range(count)):
        best[first] = (best[first + 1][0], first + 1)
        shared: float = math.inf
        for end in range(first + 2, count + 1):
            shared = min(shared, common[end - 1])
            if shared >= blocks and end - first >= rows:
                saved = (end - first - 1) * int(shared) + best[end][0]
                if saved >= best[first][0]:
                    best[first] = (saved, end)
    found: list[Segment] = []
    first = 0
    while first < count:
        end = best[first][1]
        if end - first > 1:
            found.append(Segment(first=first, end=end, blocks=min(common[first + 1 : end])))
        elif found and found[-1].blocks == 0:
            found[-1] = Segment(first=found[-1].first, end=end, blocks=0)
        else:
            found.append(Segment(first=first, end=end, blocks=0))
        first = end
    return found


def attention(
    *,
    query: Floats,
    keys: Floats,
    values: Floats,
    tables: Ints,
    lengths: Ints,
    starts: Ints,
    scale: float,
) -> Floats:
    """Return causal attention, each row over all of its own KV.

    Args:
        query: shape (tokens, heads, head_size).
        keys: shape (blocks, block_size, kv_heads, head_size); head h reads KV head
            h kv_heads // heads.
        values: the same shape.
        tables: shape (rows, width).
        lengths: shape (rows,).
        starts: shape (rows + 1,).
        scale: of the scores.

    Returns:
        shape (tokens, heads, head_size).
    """
    block_size, kv_heads = keys.shape[1:3]
    out = np.zeros_like(query)
    for row, length in enumerate(lengths):
        table = tables[row, : -(-int(length) // block_size)]
        tokens = slice(starts[row], starts[row + 1])
        count = tokens.stop - tokens.start
        if count == 0:
            continue
        for head in range(query.shape[1]):
            at = head * kv_heads // query.shape[1]
            key = keys[table, :, at].reshape(-1, keys.shape[3])[:length]
            value = values[table, :, at].reshape(-1, values.shape[3])[:length]
            scores = scale * query[tokens, head] @ key.T
            later = np.arange(length) > (length - count + np.arange(count))[:, None]
            scores[later] = -np.inf
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            out[tokens, head] = weights @ value / weights.sum(axis=1, keepdims=True)
    return out
