"""Which rows of a step are read together: groups found on the GPU, and the tables of both passes.

Adjacent rows whose block tables begin alike share those blocks. vLLM's runner keeps the requests of
a call adjacent, as they are scheduled in the order of their arrival. Everything is found by three
kernels in buffers that stay, from tensors that are on the GPU already: the host waits for nothing,
and a captured graph reads what the next step writes.

Does not cover attention itself (``attention.py``).
"""

from dataclasses import dataclass

import torch

from engine.inference.shared_prefix.kernels import (
    common_blocks_kernel,
    segments_kernel,
    tables_kernel,
)
from engine.inference.shared_prefix.limits import Limits

_CHUNK = 256  # blocks that a program looks at together


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The two passes of a step. All are views of buffers that the next step overwrites.

    The prefix pass attends, without a causal mask, from all tokens of a segment to what its rows
    share; a segment of rows in no group has the length 0. The suffix pass attends from each row to
    the rest.

    Attributes:
        segment_starts: shape (segments + 1,), each segment's first token.
        segment_lengths: shape (segments,), tokens that its rows share: whole blocks.
        segment_table: shape (segments, width), the blocks that they lie in.
        row_lengths: shape (rows,), tokens of each row that it does not share.
        row_table: shape (rows, width), the blocks that they lie in.
    """

    segment_starts: torch.Tensor
    segment_lengths: torch.Tensor
    segment_table: torch.Tensor
    row_lengths: torch.Tensor
    row_table: torch.Tensor


class Planner:
    """Finds the groups of one step after the other."""

    def __init__(
        self, *, limits: Limits, block_size: int, max_rows: int, width: int, device: torch.device
    ) -> None:
        """Make the buffers.

        Args:
            limits: from where on rows are a group.
            block_size: tokens of a block of the tables.
            max_rows: the most rows of a step.
            width: the most blocks of a row.
            device: of all tensors.
        """
        self._limits = limits
        self._block_size = block_size
        self._width = width
        self._size = 1 << max_rows.bit_length()  # above max_rows
        most = self.segments(max_rows)

        def buffer(*shape: int) -> torch.Tensor:
            return torch.zeros(shape, dtype=torch.int32, device=device)

        self._common = buffer(max_rows)
        self._row_blocks = buffer(max_rows)
        self._segment_rows = buffer(most)
        self._segment_starts = buffer(most + 1)
        self._segment_lengths = buffer(most)
        self._segment_table = buffer(most, width)
        self._row_lengths = buffer(max_rows)
        self._row_table = buffer(max_rows, width)

    def segments(self, rows: int) -> int:
        """Return how many segments a step of so many rows has, used or not: groups and gaps."""
        return 2 * (rows // self._limits.rows) + 1

    def plan(self, *, table: torch.Tensor, lengths: torch.Tensor, starts: torch.Tensor) -> Plan:
        """Return the passes of a step.

        Args:
            table: block tables, shape (rows, width or more), int32.
            lengths: tokens of each row, with those of this step, shape (rows,), int32.
            starts: first token of each row in the step, and the end, shape (rows + 1,), int32.
        """
        rows = len(lengths)
        segments = self.segments(rows)
        common_blocks_kernel[(rows,)](
            self._common,
            table,
            lengths,
            starts,
            table.stride(0),
            BLOCK_SIZE=self._block_size,
            CHUNK=_CHUNK,
        )
        segments_kernel[(1,)](
            self._segment_starts,
            self._segment_lengths,
            self._segment_rows,
            self._row_blocks,
            self._common,
            starts,
            rows,
            segments,
            LEAST_BLOCKS=self._limits.blocks(self._block_size),
            LEAST_ROWS=self._limits.rows,
            BLOCK_SIZE=self._block_size,
            SIZE=self._size,
        )
        tables_kernel[(rows + segments,)](
            self._row_table,
            self._row_lengths,
            self._segment_table,
            table,
            lengths,
            self._row_blocks,
            self._segment_rows,
            self._segment_lengths,
            rows,
            table.stride(0),
            self._width,
            BLOCK_SIZE=self._block_size,
            CHUNK=_CHUNK,
        )
        return Plan(
            segment_starts=self._segment_starts[: segments + 1],
            segment_lengths=self._segment_lengths[:segments],
            segment_table=self._segment_table[:segments],
            row_lengths=self._row_lengths[:rows],
            row_table=self._row_table[:rows],
        )
