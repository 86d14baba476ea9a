"""What KV events say is in the cache: hand-made ones, and those of the real engine."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from vllm.distributed.kv_events import AllBlocksCleared, BlockRemoved, BlockStored

from engine.inference.hot import HotPrefixes


def stored(hashes: list[int], tokens: list[int], *, parent: int | None = None) -> BlockStored:
    return BlockStored(
        block_hashes=hashes,
        parent_block_hash=parent,
        token_ids=tokens,
        block_size=2,
        lora_id=None,
        medium=None,
        lora_name=None,
    )


def removed(*hashes: int) -> BlockRemoved:
    return BlockRemoved(block_hashes=list(hashes), medium=None)


def prefixes(*events: object) -> HotPrefixes:
    hot = HotPrefixes()
    hot.publish(SimpleNamespace(events=list(events)))
    return hot


@pytest.mark.parametrize(
    ("prompt", "cached"),
    [
        ([], 0),
        ([1], 0),
        ([1, 2], 0),  # one token is left over to sample from
        ([1, 2, 9], 2),
        ([1, 2, 3, 4], 2),
        ([1, 2, 3, 4, 9], 4),
        ([1, 2, 3, 4, 5, 6, 7], 6),
        ([1, 2, 3, 9, 5, 6, 7], 2),
        ([1, 2, 7, 8, 9], 4),
        ([3, 4, 5, 6, 7], 0),  # the same blocks behind no start
        ([9, 2, 3, 4, 5], 0),
    ],
)
def test_the_longest_start_in_whole_blocks_is_hot(prompt: list[int], cached: int) -> None:
    events = [
        stored([10, 20], [1, 2, 3, 4]),
        stored([30], [5, 6], parent=20),
        stored([40], [7, 8], parent=10),
    ]
    assert prefixes(*events).cached_tokens(prompt) == cached


def test_what_was_removed_is_hot_no_more_and_ends_what_follows_it() -> None:
    hot = prefixes(stored([10, 20, 30], [1, 2, 3, 4, 5, 6]), removed(20))
    assert hot.cached_tokens([1, 2, 3, 4, 5, 6, 7]) == 2
    hot.publish(SimpleNamespace(events=[stored([20], [3, 4], parent=10)]))
    assert hot.cached_tokens([1, 2, 3, 4, 5, 6, 7]) == 6
    hot.publish(SimpleNamespace(events=[removed(99), AllBlocksCleared()]))
    assert hot.cached_tokens([1, 2, 3, 4, 5, 6, 7]) == 0


def test_nothing_is_hot_before_the_first_event() -> None:
    assert HotPrefixes().cached_tokens([1, 2, 3]) == 0
