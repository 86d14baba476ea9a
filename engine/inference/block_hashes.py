"""Hashes of prompts' blocks, computed once for what prompts have in common.

vLLM hashes a prompt's blocks in Python when a request is added, in the thread that steps the
engine: 2 ms for 8,000 tokens in blocks of 16. The K children of a prompt have the same blocks, and
an island's next prompt begins as its last one did, so most of that is repeated. Here the hashes of
the latest prompts are kept, and a request takes over those of the blocks that it begins with.

A request's adapter is left out, which vLLM would hash. Whether its keys and values are its own is
said by the salt alone (``adapters.py``): LMCache knows of no adapter either.

Does not cover the hashes themselves, which stay vLLM's own.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

_PROMPTS = 64
"""Prompts that are remembered: several of each island."""
Hasher = Callable[[Any], list[Any]]
"""Given a request of vLLM's, returns the hashes of its blocks behind those that it has."""


class SharedHashes:
    """A hasher that asks another one only for blocks that no recent prompt has."""

    def __init__(self, hasher: Hasher, *, block_size: int) -> None:
        """``hasher``: vLLM's, for blocks of ``block_size`` tokens."""
        self._hasher = hasher
        self._block_size = block_size
        self._known: deque[tuple[str | None, Sequence[int], list[Any]]] = deque(maxlen=_PROMPTS)

    def __call__(self, request: Any) -> list[Any]:
        """Return the hashes of the request's blocks behind those that it has."""
        adapter, request.lora_request = request.lora_request, None
        try:
            return self._hashes(request)
        finally:
            request.lora_request = adapter

    def _hashes(self, request: Any) -> list[Any]:
        tokens = request.prompt_token_ids
        if request.block_hashes or tokens is None or _has_more_than_tokens(request):
            return self._hasher(request)
        salt, found = request.cache_salt, self._longest(tokens, request.cache_salt)
        # In place: vLLM's own hasher goes on behind them, and vLLM adds what is returned.
        request.block_hashes.extend(found)
        computed = self._hasher(request)
        if computed:
            self._known.appendleft((salt, tokens, [*found, *computed]))
        return computed

    def _longest(self, tokens: Sequence[int], salt: str | None) -> Sequence[Any]:
        """Return the hashes of the most blocks that the tokens and a known prompt begin with."""
        longest: Sequence[Any] = ()
        size = self._block_size
        for known_salt, known, hashes in self._known:
            low, high = len(longest), min(len(hashes), len(tokens) // size)
            if known_salt != salt or high <= low or known[: size * low] != tokens[: size * low]:
                continue
            while low < high:  # the largest count of blocks that agree
                middle = (low + high + 1) // 2
                if known[size * low : size * middle] == tokens[size * low : size * middle]:
                    low = middle
                else:
                    high = middle - 1
            longest = max(longest, hashes[:low], key=len)
            if len(longest) == len(tokens) // size:
                break
        return longest


def hash_block_size(engine: Any) -> int:
    """Return how many tokens a hash is of: prompts are found in the cache in steps of so many.

    A hybrid's block, which has hundreds, has many of them (`EngineLimits.prefix_match_unit`).
    """
    return int(engine.engine_core.engine_core.scheduler.hash_block_size)


def share_hashes(engine: Any) -> None:
    """Let an engine of vLLM's in this process compute the hashes of equal blocks once."""
    core = engine.engine_core.engine_core
    if core.request_block_hasher is not None:
        core.request_block_hasher = SharedHashes(
            core.request_block_hasher, block_size=hash_block_size(engine)
        )


def _has_more_than_tokens(request: Any) -> bool:
    """Whether the hashes depend on more than the tokens: on images or embeddings."""
    return bool(request.mm_features) or request.prompt_embeds is not None
