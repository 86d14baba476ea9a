"""Which rows are groups while vLLM's scheduler admits, preempts and moves the requests."""

import random
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path

import interpreted
import numpy as np
import pytest
from simulated import KVLayout, Row, SimulatedEngine, Step, full_attention, hybrid
from steps import BatchStep

from engine.inference import prepare
from engine.inference.shared_prefix.limits import Limits
from engine.inference.shared_prefix.reference import Segment

LIMITS = Limits()
KERNEL_BLOCK = 16
"""Tokens of a block as attention sees it, where vLLM's own are larger."""


@pytest.fixture(autouse=True, scope="module")
def prepared() -> None:
    prepare(threads=1, kv_cache_gb=1)


class Islands:
    """Calls of K children each; an island's next one comes when its last one has ended."""

    def __init__(
        self, engine: SimulatedEngine, *, islands: int, k: int, calls: int, task: int = 1000
    ) -> None:
        self.engine = engine
        self._k, self._left, self._calls = k, calls, 0
        self._chance = random.Random(0)
        self._task = engine.tokens(task)
        self._running: dict[str, int] = {}  # request to call
        for _ in range(islands):
            self._call()

    def steps(self) -> Iterator[Step]:
        """Yield each step until all calls have ended; some children end early."""
        while self.engine.unfinished:
            step = self.engine.step()
            yield step
            for request in step.finished:
                self._end(request)
            ready = [each for each in step.sampled if each in self._running]
            if ready and self._chance.random() < 0.1:
                ended = self._chance.choice(ready)
                self.engine.abort(ended)
                self._end(ended)

    def _call(self) -> None:
        self._left -= 1
        self._calls += 1
        prompt = self._task + self.engine.tokens(self._chance.randint(2500, 6000))
        for child in range(self._k):
            name = f"{self._calls}.{child}"
            self._running[name] = self._calls
            self.engine.add(name, prompt, max_tokens=self._chance.randint(5, 60))

    def _end(self, request: str) -> None:
        call = self._running.pop(request)
        if call not in self._running.values() and self._left > 0:
            self._call()


def batch(rows: tuple[Row, ...], layout: KVLayout, kernel_block: int) -> BatchStep:
    """Return the tables that vLLM's runner makes of a step, in blocks as attention sees them."""
    split = layout.block_size // kernel_block
    width = max(len(row.blocks[0]) for row in rows) * split
    tables = np.zeros((len(rows), width), np.int32)
    for index, row in enumerate(rows):
        blocks = np.array(row.blocks[0], np.int32)[:, None] * split + np.arange(split)
        tables[index, : blocks.size] = blocks.ravel()
    return BatchStep(
        tables=tables,
        lengths=np.array([row.computed + row.scheduled for row in rows], np.int32),
        starts=np.cumsum([0, *(row.scheduled for row in rows)]).astype(np.int32),
    )


def saved(segments: list[Segment]) -> int:
    return sum((each.end - each.first - 1) * each.blocks for each in segments)


def possible(step: Step, made: BatchStep, block: int) -> int:
    """Return what groups of all siblings, wherever their rows are, would save."""
    calls: dict[str, list[int]] = {}
    for index, row in enumerate(step.rows):
        calls.setdefault(row.request_id.partition(".")[0], []).append(index)
    total = 0
    for rows in calls.values():
        full = (made.lengths - np.diff(made.starts))[rows].min() // block
        alike = (made.tables[rows, :full] == made.tables[rows[0], :full]).all(axis=0)
        shared = int(np.cumprod(alike).sum())
        if len(rows) >= LIMITS.rows and shared * block >= LIMITS.tokens:
            total += (len(rows) - 1) * shared
    return total


def check(step: Step, made: BatchStep, segments: list[Segment], block: int) -> None:
    """Assert that a group's rows share what they are said to, all of it computed before."""
    assert [each.first for each in segments] == [0, *(each.end for each in segments[:-1])]
    for each in segments:
        for row in range(each.first, each.end):
            assert each.blocks * block <= step.rows[row].computed
            shared = made.tables[row, : each.blocks]
            assert (shared == made.tables[each.first, : each.blocks]).all()
            assert not each.blocks or 0 not in shared  # the null block is no one's


@pytest.mark.parametrize(
    ("layout", "block", "blocks", "k", "most"),
    [
        pytest.param(lambda: full_attention(block_size=64), 64, 6000, 16, 64, id="full"),
        pytest.param(lambda: full_attention(block_size=16), 16, 24000, 8, 64, id="small blocks"),
        pytest.param(lambda: full_attention(block_size=64), 64, 6000, 32, 50, id="too few rows"),
        pytest.param(lambda: full_attention(block_size=64), 64, 210, 16, 64, id="preempted"),
        pytest.param(lambda: hybrid(match_unit=16), KERNEL_BLOCK, 1200, 16, 64, id="hybrid"),
    ],
)
def test_siblings_are_found_while_requests_come_and_go(
    tmp_path: Path, layout: object, block: int, blocks: int, k: int, most: int
) -> None:
    assert callable(layout)
    of = layout()
    engine = SimulatedEngine(folder=tmp_path, layout=of, blocks=blocks, max_num_seqs=most)
    done = best = preempted = 0
    for step in Islands(engine, islands=4, k=k, calls=10).steps():
        made = batch(step.rows, of, block)
        segments = made.segments(LIMITS, block)
        check(step, made, segments, block)
        done += saved(segments)
        best += possible(step, made, block)
        preempted += len(step.preempted)
    assert best > 0
    assert done >= 0.95 * best  # and more, where islands share their task
    assert bool(preempted) == (blocks == 210)


def test_the_kernels_agree_on_steps_of_the_scheduler(interpreter: Executor, tmp_path: Path) -> None:
    of = full_attention(block_size=64)
    engine = SimulatedEngine(folder=tmp_path, layout=of, blocks=210)
    islands = Islands(engine, islands=3, k=12, calls=6)
    steps = [batch(step.rows, of, 64) for step in islands.steps()][::12]
    width = max(step.tables.shape[1] for step in steps)
    plans = interpreter.submit(interpreted.plans, steps, LIMITS, 64, 64, width).result()
    grouped = 0
    for step, plan in zip(steps, plans, strict=True):
        wanted = step.segments(LIMITS, 64)
        lengths = plan["segment_lengths"][: len(wanted)]
        assert lengths.tolist() == [each.blocks * 64 for each in wanted]
        first = plan["segment_starts"][: len(wanted)]
        assert first.tolist() == [step.starts[each.first] for each in wanted]
        grouped += sum(each.blocks > 0 for each in wanted)
    assert grouped >= 3
