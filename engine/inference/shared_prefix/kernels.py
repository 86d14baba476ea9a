"""Triton kernels of decode over a shared prefix, which `plan` and `attention` launch.

Each is held against ``reference.py`` under Triton's interpreter. Row counts and strides change from
step to step and are not specialised on, so that no step waits for a compilation. Arguments without
a type are pointers and whole numbers: Triton reads annotations, and knows no names for these.
"""

# mypy: disable-error-code="no-untyped-def"

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl


def _kernel(*changing: str) -> Callable[[Callable[..., None]], Any]:
    """Return the decorator of a kernel whose arguments ``changing`` are not specialised on."""
    return lambda function: triton.jit(function, do_not_specialize=changing)


@_kernel("stride")
def common_blocks_kernel(
    common,  # (rows,) out: leading blocks shared with the row before
    table,  # (rows, stride)
    lengths,  # (rows,)
    starts,  # (rows + 1,)
    stride,
    BLOCK_SIZE: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Compare each row's block table with that of the row before; one program a row."""
    row = tl.program_id(0)
    before = tl.maximum(row - 1, 0)
    mine = tl.load(lengths + row) - tl.load(starts + row + 1) + tl.load(starts + row)
    theirs = tl.load(lengths + before) - tl.load(starts + before + 1) + tl.load(starts + before)
    limit = tl.where(row > 0, tl.minimum(mine, theirs) // BLOCK_SIZE, 0)
    same = limit
    for at in range(0, limit, CHUNK):
        index = at + tl.arange(0, CHUNK)
        inside = index < limit
        block = tl.load(table + row * stride + index, mask=inside, other=0)
        other = tl.load(table + before * stride + index, mask=inside, other=0)
        same = tl.minimum(same, tl.min(tl.where(inside & (block != other), index, limit), axis=0))
    tl.store(common + row, same)


@_kernel("rows", "segments")
def segments_kernel(
    segment_starts,  # (segments + 1,) out: first token of each segment
    segment_lengths,  # (segments,) out: tokens that the rows of a segment share
    segment_rows,  # (segments,) out: first row of each segment
    row_blocks,  # (rows,) out: blocks that a row shares
    common,  # (rows,)
    starts,  # (rows + 1,)
    rows,
    segments,
    LEAST_BLOCKS: tl.constexpr,
    LEAST_ROWS: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    SIZE: tl.constexpr,  # a power of two above rows
):
    """Choose the groups that save the most reads (`reference.segments`); one program.

    Dynamic programming from the last row to the first, over all ends of a group at once; then one
    walk over the segments. Unused segments have no tokens.
    """
    index = tl.arange(0, SIZE)
    shared = tl.load(common + index, mask=index < rows, other=0)
    saved = tl.zeros([SIZE], tl.int64)  # of the rows from each one on
    ends = tl.zeros([SIZE], tl.int32)  # of the group that begins at a row
    low = tl.full([SIZE], 1 << 30, tl.int32)  # blocks shared by the rows first to index - 1
    for step in range(0, rows):
        first = rows - 1 - step
        after = tl.load(common + tl.minimum(first + 1, rows - 1))
        low = tl.where(index >= first + 2, tl.minimum(low, after), low)
        count = index - first
        grouped = (count >= LEAST_ROWS) & (low >= LEAST_BLOCKS) & (index <= rows)
        gain = tl.where(grouped, (count - 1) * low, 0).to(tl.int64)
        # The gain and the end in one number, so that one reduction finds both.
        key = tl.where(grouped | (count == 1), (saved + gain) * SIZE + index, -1)
        best = tl.max(key, axis=0)
        saved = tl.where(index == first, best // SIZE, saved)
        ends = tl.where(index == first, (best % SIZE).to(tl.int32), ends)

    row = 0
    made = 0
    plain = 0  # whether the last segment is of rows in no group
    while row < rows:
        end = tl.sum(tl.where(index == row, ends, 0), axis=0)
        inner = (index > row) & (index < end)
        blocks = tl.min(tl.where(inner, shared, 1 << 30), axis=0)
        blocks = tl.where(end - row > 1, blocks, 0)
        is_new = (blocks > 0) | (plain == 0)
        tl.store(segment_starts + made, tl.load(starts + row), mask=is_new)
        tl.store(segment_lengths + made, blocks * BLOCK_SIZE, mask=is_new)
        tl.store(segment_rows + made, row, mask=is_new)
        tl.store(row_blocks + index, blocks, mask=(index >= row) & (index < end))
        made += is_new.to(tl.int32)
        plain = (blocks == 0).to(tl.int32)
        row = end
    unused = (index >= made) & (index < segments)
    tl.store(segment_lengths + index, 0, mask=unused)
    tl.store(segment_rows + index, 0, mask=unused)
    tl.store(segment_starts + index, tl.load(starts + rows), mask=unused | (index == segments))


@_kernel("rows", "stride", "width")
def tables_kernel(
    row_table,  # (rows, width) out: blocks of a row behind those it shares
    row_lengths,  # (rows,) out: tokens of a row behind those it shares
    segment_table,  # (segments, width) out: blocks that the rows of a segment share
    table,  # (rows, stride)
    lengths,  # (rows,)
    row_blocks,  # (rows,)
    segment_rows,  # (segments,)
    segment_lengths,  # (segments,)
    rows,
    stride,
    width,
    BLOCK_SIZE: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Write the block tables of both passes; one program a row, then one a segment."""
    program = tl.program_id(0)
    if program < rows:
        length = tl.load(lengths + program)
        skip = tl.load(row_blocks + program)
        blocks = tl.minimum((length + BLOCK_SIZE - 1) // BLOCK_SIZE, width) - skip
        tl.store(row_lengths + program, length - skip * BLOCK_SIZE)
        source = table + program * stride + skip
        target = row_table + program * width
    else:
        segment = program - rows
        blocks = tl.load(segment_lengths + segment) // BLOCK_SIZE
        source = table + tl.load(segment_rows + segment) * stride
        target = segment_table + segment * width
    for at in range(0, blocks, CHUNK):
        index = at + tl.arange(0, CHUNK)
        block = tl.load(source + index, mask=index < blocks, other=0)
        tl.store(target + index, block, mask=index < blocks)


@_kernel("token_stride", "head_stride", "lse_stride", "shared_lse_stride")
def merge_kernel(
    out,  # (tokens, heads, HEAD_SIZE) of the own part; becomes that of both
    lse,  # (heads, tokens) of the own part
    shared_out,  # (tokens, heads, HEAD_SIZE) of the shared part, contiguous
    shared_lse,  # (heads, tokens) of the shared part; infinite where there is none
    token_stride,
    head_stride,
    lse_stride,
    shared_lse_stride,
    HEAD_SIZE: tl.constexpr,
    SIZE: tl.constexpr,  # a power of two, HEAD_SIZE or above
):
    """Join attention over two parts of the KV by their log-sum-exp; a program a token and head.

    Section 2.2 of arXiv:2501.01005, in float32. Where nothing is shared, ``out`` is not touched,
    and ``shared_out`` may hold anything.
    """
    token = tl.program_id(0)
    head = tl.program_id(1)
    theirs = tl.load(shared_lse + head * shared_lse_stride + token)
    is_shared = (theirs > float("-inf")) & (theirs < float("inf"))
    mine = tl.load(lse + head * lse_stride + token)
    weight = 1.0 / (1.0 + tl.exp(mine - theirs))
    index = tl.arange(0, SIZE)
    inside = index < tl.where(is_shared, HEAD_SIZE, 0)
    at = out + token * token_stride + head * head_stride + index
    own = tl.load(at, mask=inside, other=0.0).to(tl.float32)
    heads = tl.num_programs(1)
    shared = shared_out + (token * heads + head) * HEAD_SIZE + index
    difference = tl.load(shared, mask=inside, other=0.0).to(tl.float32) - own
    tl.store(at, (own + difference * weight).to(out.dtype.element_ty), mask=inside)
