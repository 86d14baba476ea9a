"""Blocks that prompts have in common are hashed once, and to what vLLM makes of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.inference import prepare
from engine.inference.block_hashes import SharedHashes

BLOCK = 4


@pytest.fixture(scope="module", autouse=True)
def prepared() -> None:
    prepare(threads=1, kv_cache_gb=1)


class Hashing:
    """vLLM's own hasher, and the blocks that it was asked to hash."""

    def __init__(self, block_size: int = BLOCK) -> None:
        from vllm.utils.hashing import sha256
        from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash

        def counted(value: Any) -> bytes:
            self.hashed += 1
            return bytes(sha256(value))

        init_none_hash(sha256)
        self.hashed = 0
        self.own = get_request_block_hasher(block_size, sha256)
        self.shared = SharedHashes(
            get_request_block_hasher(block_size, counted), block_size=block_size
        )


def request(
    tokens: list[int],
    hasher: Callable[[Any], list[Any]],
    *,
    salt: str | None = None,
    adapter: Any = None,
) -> Any:
    from vllm.sampling_params import SamplingParams
    from vllm.v1.request import Request

    sampling = SamplingParams(max_tokens=8)
    return Request(
        "r", tokens, sampling, None, lora_request=adapter, block_hasher=hasher, cache_salt=salt
    )


def test_siblings_are_hashed_once_and_a_next_prompt_from_where_it_differs() -> None:
    hashing, tokens = Hashing(64), [random.randrange(1000) for _ in range(8192)]
    every = [request(list(tokens), hashing.shared) for _ in range(64)]
    assert hashing.hashed == 8192 // 64
    expected = request(tokens, hashing.own).block_hashes
    assert all(each.block_hashes == expected for each in every)
    changed = [*tokens[:6400], *tokens[:1792]]
    assert (
        request(changed, hashing.shared).block_hashes == request(changed, hashing.own).block_hashes
    )
    assert hashing.hashed == (8192 + 1792) // 64


def test_what_is_generated_is_hashed_as_ever() -> None:
    hashing = Hashing()
    for tokens in ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], [1, 2, 3]):
        ours, theirs = request(tokens, hashing.shared), request(tokens, hashing.own)
        for token in range(20):
            ours.append_output_token_ids(token)
            theirs.append_output_token_ids(token)
            assert ours.block_hashes == theirs.block_hashes


def test_a_salt_keeps_prompts_apart() -> None:
    hashing, tokens = Hashing(), list(range(20))
    for salt in (None, "a", "b", "a", None):
        ours = request(tokens, hashing.shared, salt=salt).block_hashes
        assert ours == request(tokens, hashing.own, salt=salt).block_hashes
    assert hashing.hashed == 3 * 5


def test_an_adapter_is_left_out_and_its_salt_is_not() -> None:
    from vllm.lora.request import LoRARequest

    hashing, tokens = Hashing(), list(range(20))
    adapter = LoRARequest("adapter-1", 1, "/anywhere")
    for salt in (None, "adapter-1"):
        own = request(tokens, hashing.own, salt=salt)
        ours = request(tokens, hashing.shared, salt=salt, adapter=adapter)
        for token in range(9):
            own.append_output_token_ids(token)
            ours.append_output_token_ids(token)
        assert ours.block_hashes == own.block_hashes
        assert ours.lora_request is adapter


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 30), st.lists(st.integers(0, 1), max_size=20)),
        max_size=12,
    )
)
def test_any_prompts_have_vllms_own_hashes(
    prompts: list[tuple[int, int, list[int]]],
) -> None:
    hashing = Hashing()
    for start, length, end in prompts:
        tokens = [*[start] * length, *end]
        if tokens:
            ours = request(tokens, hashing.shared).block_hashes
            assert ours == request(tokens, hashing.own).block_hashes


def test_only_the_latest_prompts_are_kept() -> None:
    hashing = Hashing()
    for number in range(100):
        request([number] * BLOCK, hashing.shared)
    hashing.hashed = 0
    request([99] * BLOCK, hashing.shared)
    assert hashing.hashed == 0
    request([0] * BLOCK, hashing.shared)
    assert hashing.hashed == 1
