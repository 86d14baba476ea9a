"""The groups that the kernels find are those of the reference, and the reference's are the best."""

import itertools
import random
from concurrent.futures import Executor

import interpreted
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from steps import BatchStep, batch_step

from engine.inference.shared_prefix.limits import Limits
from engine.inference.shared_prefix.reference import Segment, segments

BLOCK = 16
LIMITS = Limits(tokens=64, rows=3)
WIDTH = 96


def best_saving(common: list[int], *, blocks: int, rows: int) -> int:
    """Return the most reads that any cut of the rows into groups saves, by trying all."""
    count = len(common)
    most = 0
    for cuts in itertools.product((False, True), repeat=max(0, count - 1)):
        ends = [row + 1 for row, cut in enumerate(cuts) if cut] + [count]
        saved = 0
        for first, end in itertools.pairwise([0, *ends]):
            shared = min(common[first + 1 : end], default=0)
            if end - first >= rows and shared >= blocks:
                saved += (end - first - 1) * shared
        most = max(most, saved)
    return most


@given(
    common=st.lists(st.integers(0, 6), min_size=1, max_size=9),
    blocks=st.integers(1, 3),
    rows=st.integers(2, 4),
)
def test_no_other_groups_save_more(common: list[int], blocks: int, rows: int) -> None:
    found = segments(common, blocks=blocks, rows=rows)
    assert [each.first for each in found] == [0, *(each.end for each in found[:-1])]
    assert found[-1].end == len(common)
    saved = 0
    for each, after in itertools.zip_longest(found, found[1:]):
        assert each.blocks or after is None or after.blocks  # rows in no group are one segment
        if each.blocks:
            assert each.blocks == min(common[each.first + 1 : each.end]) >= blocks
            assert each.end - each.first >= rows
            saved += (each.end - each.first - 1) * each.blocks
    assert saved == best_saving(common, blocks=blocks, rows=rows)


def test_islands_that_share_a_task_are_groups_of_their_own() -> None:
    common = [0, 20, 20, 20, 5, 20, 20, 20]
    assert segments(common, blocks=4, rows=3) == [
        Segment(first=0, end=4, blocks=20),
        Segment(first=4, end=8, blocks=20),
    ]
    common = [0, 20, 20, 20, 18, 20, 20, 20]
    assert segments(common, blocks=4, rows=3) == [Segment(first=0, end=8, blocks=18)]


def check(step: BatchStep, plan: interpreted.Planned) -> list[Segment]:
    """Assert that a plan is the reference's; return its segments."""
    wanted = step.segments(LIMITS, BLOCK)
    most = len(plan["segment_lengths"])
    assert len(wanted) <= most
    unused = [0] * (most - len(wanted))
    assert plan["segment_lengths"].tolist() == [each.blocks * BLOCK for each in wanted] + unused
    tokens = [int(step.starts[each.first]) for each in wanted]
    tail = [int(step.starts[-1])] * (len(unused) + 1)
    assert plan["segment_starts"].tolist() == tokens + tail
    for segment, each in enumerate(wanted):
        shared = step.tables[each.first, : each.blocks]
        assert (plan["segment_table"][segment, : each.blocks] == shared).all()
        for row in range(each.first, each.end):
            assert (step.tables[row, : each.blocks] == shared).all()
            own = step.lengths[row] - each.blocks * BLOCK
            assert plan["row_lengths"][row] == own >= step.starts[row + 1] - step.starts[row]
            count = -(-int(own) // BLOCK)
            rest = step.tables[row, each.blocks : each.blocks + count]
            assert (plan["row_table"][row, :count] == rest).all()
    return wanted


def drawn(seed: int) -> BatchStep:
    """Return a step of any kind."""
    chance = random.Random(seed)
    sizes = [chance.choice((1, 1, 2, 3, 4, 8, 17)) for _ in range(chance.randint(1, 4))]
    return batch_step(
        chance,
        groups=sizes,
        shared=(0, 20),
        own=(1, 5 * BLOCK),
        block_size=BLOCK,
        width=WIDTH,
        task=chance.choice((0, 0, 3, 6)),
        queries=chance.choice(((1, 1), (1, 1), (1, 40))),
        padding=chance.choice((0, 0, 3)),
        reorder=chance.random() < 0.3,
    )


def test_the_kernels_find_the_groups_of_the_reference(interpreter: Executor) -> None:
    steps = [drawn(seed) for seed in range(40)]
    found = interpreter.submit(interpreted.plans, steps, LIMITS, BLOCK, 80, WIDTH).result()
    groups = [
        each.end - each.first
        for step, plan in zip(steps, found, strict=True)
        for each in check(step, plan)
        if each.blocks
    ]
    assert len(groups) > 30 and max(groups) >= 17  # and a step's buffers leave no trace in the next


@pytest.mark.parametrize("size", [1, 2, 3, 8, 31, 64])
def test_a_group_of_each_size(interpreter: Executor, size: int) -> None:
    step = batch_step(
        random.Random(size),
        groups=[size],
        shared=(9, 9),
        own=(1, 60),
        block_size=BLOCK,
        width=WIDTH,
    )
    (plan,) = interpreter.submit(interpreted.plans, [step], LIMITS, BLOCK, 64, WIDTH).result()
    (found,) = check(step, plan)
    assert found.blocks == (9 if size >= LIMITS.rows else 0)


def test_tables_longer_than_a_program_looks_at_together(interpreter: Executor) -> None:
    chance = random.Random(0)
    steps = [
        batch_step(
            chance,
            groups=[4, 3],
            shared=(low, low),
            own=(1, 700 * BLOCK),
            block_size=BLOCK,
            width=1400,
        )
        for low in (255, 256, 257, 600)
    ]
    found = interpreter.submit(interpreted.plans, steps, LIMITS, BLOCK, 8, 1400).result()
    for step, plan in zip(steps, found, strict=True):
        assert [each.end - each.first for each in check(step, plan)] == [4, 3]


def test_blocks_that_this_step_fills_are_not_shared(interpreter: Executor) -> None:
    """Two rows may have the same block and one of them may still compute it, with a causal mask."""
    tables = np.arange(1, 11, dtype=np.int32) * np.ones((4, 1), np.int32)
    step = BatchStep(
        tables=tables,
        lengths=np.array([160, 160, 160, 160], np.int32),
        starts=np.array([0, 1, 2, 82, 83], np.int32),
    )
    (plan,) = interpreter.submit(interpreted.plans, [step], LIMITS, BLOCK, 8, 10).result()
    assert check(step, plan) == [Segment(first=0, end=4, blocks=5)]


def test_the_tensors_of_a_plan_stay_where_they_are(interpreter: Executor) -> None:
    """A captured graph reads them where they were at its capture."""
    steps = [drawn(seed) for seed in range(5)]
    first, *others = interpreter.submit(
        interpreted.addresses, steps, LIMITS, BLOCK, 80, WIDTH
    ).result()
    assert all(each == first for each in others)
