"""The count of bytes: by hand for one step, and what it says of the headline's model."""

import json

import pytest

from bench import shared_prefix
from bench.shared_prefix import Batch, Shape, mean_bytes, step_bytes
from engine.core import UserError

CODER = Shape(layers=48, heads=32, kv_heads=4, head_size=128)


def test_a_step_counted_by_hand() -> None:
    shape = Shape(layers=1, heads=8, kv_heads=2, head_size=64)
    kv, query = 2 * 2 * 2 * 64, 2 * 8 * 64  # bytes of a token
    batch = Batch(islands=1, k=16, prompt=2048 + 10, own=5, block=64)
    found = step_bytes(shape, batch)
    assert found.floor == (2058 + 16 * 5) * kv + 16 * query
    assert found.unshared == 16 * 2063 * kv + 16 * query
    merged = 2 * 16 * (query + 8 * 4)
    assert found.shared == (2048 + 16 * 15) * kv + 2 * 16 * query + merged
    # 64 queries of a KV head are one tile: no second reading.
    partial = (132 // 2) * 16 * 8 * 65 * 4
    assert found.no_cache == found.shared + partial


def test_what_is_shared_by_too_few_or_too_short_is_read_by_each() -> None:
    for k, prompt in ((15, 8192), (16, 2047)):
        found = step_bytes(CODER, Batch(islands=1, k=k, prompt=prompt, own=1, block=64))
        assert found.shared >= found.unshared


def test_islands_read_a_prompt_each() -> None:
    one, four = (
        step_bytes(CODER, Batch(islands=count, k=16, prompt=8192, own=100, block=64))
        for count in (1, 4)
    )
    assert (four.floor, four.shared) == (4 * one.floor, 4 * one.shared)


def test_the_headline_is_within_its_limit_of_the_floor() -> None:
    found = mean_bytes(CODER, islands=1, k=32, prompt=8192, answer=512, block=64)
    assert found.shared <= 1.15 * found.floor
    assert found.unshared >= 10 * found.floor
    prompt_once = 8192 * 96 * 1024
    assert prompt_once < found.floor < found.shared < found.no_cache


def test_the_last_line_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    shared_prefix.main(["k=32", "prompts=8192", "islands=2"])
    (step,) = json.loads(capsys.readouterr().out.splitlines()[-1])["steps"]
    assert (step["k"], step["prompt"]) == (32, 8192)


@pytest.mark.parametrize("given", ["k=1.5", "k=", "block=0", "heads=31", "model=x", "prompts=8k"])
def test_bad_input_is_one_line(given: str) -> None:
    with pytest.raises(UserError) as refusal:
        shared_prefix.main([given])
    assert str(refusal.value).isprintable()
