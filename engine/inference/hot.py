"""Which prefixes are in the prefix cache now, followed through vLLM's KV events.

vLLM tells a publisher of every block that it stores or drops: the hash of all tokens up to the
block's end, its parent's hash, and its tokens. `HotPrefixes` takes a publisher's place and keeps
the tree of what is there, so that a prompt can be looked up without being sent.

Does not cover KV that LMCache holds outside the engine, or LoRA adapters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_Key = tuple[Any, tuple[int, ...]]  # the hash of the block before, and the block's own tokens


class HotPrefixes:
    """A publisher for vLLM's scheduler that remembers what the events say."""

    def __init__(self) -> None:
        self._hashes: dict[_Key, Any] = {}
        self._keys: dict[Any, _Key] = {}
        self._block_size = 0

    def cached_tokens(self, token_ids: Sequence[int]) -> int:
        """Return how many tokens at the start of a prompt the cache would serve now.

        At least one token is left over, because something has to be computed to sample from.
        """
        if not self._block_size:
            return 0
        size, cached = self._block_size, 0
        before: Any = None
        while cached + size < len(token_ids):
            before = self._hashes.get((before, tuple(token_ids[cached : cached + size])))
            if before is None:
                break
            cached += size
        return cached

    def publish(self, batch: Any) -> None:
        """Take in a batch of events; called by vLLM's scheduler after each step."""
        for event in batch.events:
            match type(event).__name__:
                case "BlockStored":
                    self._store(event)
                case "BlockRemoved":
                    for each in event.block_hashes:
                        key = self._keys.pop(each, None)
                        if key is not None:
                            self._hashes.pop(key, None)
                case "AllBlocksCleared":
                    self._hashes.clear()
                    self._keys.clear()

    def shutdown(self) -> None:
        """Part of a publisher's face; there is nothing to end."""

    def get_publisher_config(self) -> None:
        """Part of a publisher's face: it has no address that others could join."""

    def _store(self, event: Any) -> None:
        self._block_size = event.block_size
        before = event.parent_block_hash
        for index, each in enumerate(event.block_hashes):
            start = index * event.block_size
            key = (before, tuple(event.token_ids[start : start + event.block_size]))
            self._hashes[key] = each
            self._keys[each] = key
            before = each
