"""The simulation is vLLM's scheduler: siblings share blocks, pressure preempts, hits count."""

from collections.abc import Callable
from pathlib import Path

import pytest
from simulated import KVLayout, SimulatedEngine, Step, full_attention, hybrid

from engine.inference import prepare


@pytest.fixture(autouse=True, scope="module")
def prepared() -> None:
    prepare(threads=1, kv_cache_gb=1)


def run(engine: SimulatedEngine) -> list[Step]:
    """Step until every request has ended."""
    steps = []
    while engine.unfinished:
        steps.append(engine.step())
        assert len(steps) < 10_000
    return steps


def test_siblings_share_the_whole_blocks_of_their_prompt(tmp_path: Path) -> None:
    engine = SimulatedEngine(folder=tmp_path, layout=full_attention(block_size=64), blocks=400)
    prompt = engine.tokens(1000)
    for child in range(4):
        engine.add(str(child), prompt, max_tokens=3)
    first, *rest = run(engine)
    assert first.cached == {"0": 0, "1": 960, "2": 960, "3": 960}
    assert [row.scheduled for row in first.rows] == [40, 40, 40, 1000]  # as the runner sorts them
    assert [(row.computed, row.scheduled) for row in rest[0].rows] == [(1000, 1)] * 4
    tables = [row.blocks[0] for row in rest[0].rows]
    assert len({table[:15] for table in tables}) == 1
    assert len({table[15] for table in tables}) == 4
    assert sorted(rest[-1].finished) == ["0", "1", "2", "3"]
    assert len(rest) == 2


def test_a_prompt_that_exceeds_the_budget_is_split_over_steps(tmp_path: Path) -> None:
    engine = SimulatedEngine(
        folder=tmp_path, layout=full_attention(), blocks=400, max_num_batched_tokens=512
    )
    engine.add("long", engine.tokens(1100), max_tokens=1)
    steps = run(engine)
    assert [step.rows[0].scheduled for step in steps] == [512, 512, 76]
    assert [step.sampled for step in steps] == [(), (), ("long",)]


def test_a_pool_that_is_too_small_preempts_and_all_still_end(tmp_path: Path) -> None:
    engine = SimulatedEngine(folder=tmp_path, layout=full_attention(block_size=16), blocks=40)
    for request in range(4):
        engine.add(str(request), engine.tokens(100), max_tokens=120)
    steps = run(engine)
    assert any(step.preempted for step in steps)
    assert sorted(each for step in steps for each in step.finished) == ["0", "1", "2", "3"]


def test_an_aborted_request_is_in_no_further_step(tmp_path: Path) -> None:
    engine = SimulatedEngine(folder=tmp_path, layout=full_attention(), blocks=400)
    engine.add("ended", engine.tokens(100), max_tokens=50)
    engine.add("stays", engine.tokens(100), max_tokens=5)
    engine.step()
    engine.abort("ended")
    assert {row.request_id for step in run(engine) for row in step.rows} == {"stays"}


@pytest.mark.parametrize(
    ("layout", "least"),
    [(hybrid, 0), (lambda: hybrid(match_unit=16), 4992)],
    ids=["default", "match unit 16"],
)
def test_a_hybrid_finds_less_of_a_prompt_unless_its_hashes_are_fine(
    tmp_path: Path, layout: Callable[[], KVLayout], least: int
) -> None:
    engine = SimulatedEngine(folder=tmp_path, layout=layout(), blocks=1000)
    prompt = engine.tokens(5000)
    cached = {}
    for request in "abc":
        engine.add(request, prompt, max_tokens=2)
        cached |= {each: hit for step in run(engine) for each, hit in step.cached.items()}
    assert cached["a"] == 0
    assert least <= cached["c"] < 5000
    engine.add("one more", engine.tokens(50), max_tokens=1)
    assert len(engine.step().rows[0].blocks) == 4  # attention and three groups of state
