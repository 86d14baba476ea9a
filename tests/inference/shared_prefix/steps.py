"""Steps of a batch to plan: block tables with shared beginnings, drawn by chance."""

import random
from dataclasses import dataclass

import numpy as np

from engine.inference.shared_prefix.limits import Limits
from engine.inference.shared_prefix.reference import Ints, Segment, common_blocks, segments


@dataclass(frozen=True, kw_only=True)
class BatchStep:
    """The rows of a step; see ``engine.inference.shared_prefix.reference``."""

    tables: Ints
    lengths: Ints
    starts: Ints

    def segments(self, limits: Limits, block_size: int) -> list[Segment]:
        """Return the groups, by the reference."""
        common = common_blocks(
            tables=self.tables, lengths=self.lengths, starts=self.starts, block_size=block_size
        )
        return segments(common, blocks=limits.blocks(block_size), rows=limits.rows)


def batch_step(
    chance: random.Random,
    *,
    groups: list[int],
    shared: tuple[int, int],
    own: tuple[int, int],
    block_size: int,
    width: int,
    task: int = 0,
    queries: tuple[int, int] = (1, 1),
    padding: int = 0,
    reorder: bool = False,
) -> BatchStep:
    """Return a step in which each of ``groups`` rows share a prompt.

    Args:
        chance: draws what is not given.
        groups: rows of each group.
        shared: the least and most blocks that a group shares beyond the task's.
        own: the least and most tokens of a row behind its shared blocks.
        block_size: tokens of a block.
        width: of the tables; behind a row's blocks stands what an earlier step left.
        task: blocks that all rows share.
        queries: the least and most tokens of a row in this step.
        padding: rows without tokens behind the others, as a graph has them.
        reorder: whether the rows are shuffled.
    """
    fresh = iter(chance.sample(range(1, 200_000), 60_000))
    of_task = [next(fresh) for _ in range(task)]
    rows = []
    for count in groups:
        common = of_task + [next(fresh) for _ in range(chance.randint(*shared))]
        for _ in range(count):
            length = len(common) * block_size + chance.randint(*own)
            blocks = common + [next(fresh) for _ in range(-(-length // block_size) - len(common))]
            rows.append((blocks, length, min(length, chance.randint(*queries))))
    if reorder:
        chance.shuffle(rows)
    tables = np.full((len(rows) + padding, width), 7, np.int32)  # alike, but no one's blocks
    for row, (blocks, _, _) in enumerate(rows):
        tables[row, : len(blocks)] = blocks
    tables[len(rows) :] = 0
    lengths = [length for _, length, _ in rows] + [0] * padding
    counts = [count for _, _, count in rows] + [0] * padding
    return BatchStep(
        tables=tables,
        lengths=np.array(lengths, np.int32),
        starts=np.cumsum([0, *counts]).astype(np.int32),
    )
