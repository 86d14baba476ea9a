"""Why prompt tokens were computed and not served from the prefix cache.

vLLM counts how many tokens of a prompt were cached. This module says why the others were not, from
the earlier prompts of the session. vLLM keeps whole blocks of tokens, each under the hash of all
tokens up to its end. So it finds a block only if all tokens before the block are the same, too. A
*block* below is one of the cache; a *part* is an `engine.core.Block` of the prompt.

- ``evicted``: an earlier prompt had this block behind the same tokens, and it is gone.
- ``concurrent``: a call that is under way has this block behind the same tokens. Its blocks are
  held, so the block is not evicted: it was not computed yet.
- ``alignment``: tokens after the last block that can be found. Also, in the first block that is
  new, the tokens of those parts that an earlier prompt had at the same place.
- ``adapter``: an earlier prompt had the part at the same place, but was computed with another
  adapter, whose keys and values are its own.
- ``moved``: an earlier prompt had the part behind other tokens.
- ``compaction``: the same, and the island's history was compacted since its last call.
- ``cold``: the first call of a session; also a task with which no earlier call began.
- ``new``: every other part, as a whole. That includes a part that only begins like an earlier one,
  and an answer of the model, although its decode may have left it in the cache.

Does not cover how vLLM counts: the counts are its own, only the reasons are made here.
"""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.core import Block, Miss, Part, Prompt


@dataclass(frozen=True, kw_only=True, slots=True)
class CallMisses:
    """The account of one call.

    Attributes:
        reasons: for each token of its prompt, the reason if it is computed.
        starts: hashes of all tokens up to the end of each block of its prompt.
    """

    reasons: Sequence[Miss]
    starts: Sequence[int]

    def of_child(self, cached_tokens: int) -> Mapping[Miss, int]:
        """Return how many tokens were computed for a child, by reason; their sum is all of them.

        Args:
            cached_tokens: of its prompt, as vLLM counted them.
        """
        computed = self.reasons[cached_tokens:]
        return {reason: count for reason in Miss if (count := computed.count(reason))}


class MissLedger:
    """Remembers the prompts of a session as hashes; call `begin` with each call's prompt."""

    def __init__(self, *, block_size: int) -> None:
        """``block_size``: tokens of a block of the prefix cache."""
        self._block_size = block_size
        self._starts: set[int] = set()  # of all tokens up to the end of a block of the cache
        self._under_way: Counter[int] = Counter()  # of those, by calls that have not ended
        self._sequences: set[int] = set()  # of all parts of a prompt up to one of them
        self._texts: set[int] = set()  # of the same, whichever adapter computed them
        self._parts: set[int] = set()
        self._compactions: dict[int, int] = {}  # by island, at its last call

    def begin(
        self, prompt: Prompt, *, island: int, compactions: int, adapter: int = 0
    ) -> CallMisses:
        """Return the account of a call that begins now.

        Args:
            prompt: of all the call's children.
            island: that asks.
            compactions: how often the island's history was compacted so far in the run.
            adapter: version whose keys and values the prompt has; 0 for the model's own, which it
                also has with an adapter that changes none.
        """
        token_ids, size = prompt.token_ids, self._block_size
        starts = _starts(token_ids, size=size, adapter=adapter)
        sequences = _sequences(prompt.blocks, adapter=adapter)
        texts = _sequences(prompt.blocks, adapter=0)
        compacted = compactions != self._compactions.get(island, compactions)
        reasons: list[Miss] = []
        for block, sequence, text in zip(prompt.blocks, sequences, texts, strict=True):
            if sequence in self._sequences:
                reason = Miss.ALIGNMENT
            elif text in self._texts:
                reason = Miss.ADAPTER
            else:
                reason = self._reason(block, compacted)
            reasons += [reason] * len(block.token_ids)
        # One token is always computed, so that there is something to sample from.
        findable = max(len(token_ids) - 1, 0) // size
        for index, start in enumerate(starts[:findable]):
            if start in self._starts:
                reason = Miss.CONCURRENT if self._under_way[start] else Miss.EVICTED
                reasons[index * size : (index + 1) * size] = [reason] * size
        rest = len(token_ids) - findable * size
        reasons[findable * size :] = [Miss.ALIGNMENT] * rest
        self._starts.update(starts)
        self._under_way.update(starts)
        self._sequences.update(sequences)
        self._texts.update(texts)
        self._parts.update(hash(block.token_ids) for block in prompt.blocks)
        self._compactions[island] = compactions
        return CallMisses(reasons=reasons, starts=starts)

    def end(self, call: CallMisses) -> None:
        """Take in that no child of a call is decoded any more."""
        self._under_way -= Counter(call.starts)

    def _reason(self, block: Block, compacted: bool) -> Miss:
        """Return why the tokens of ``block`` are computed where the tokens before it are new."""
        if not self._sequences:
            return Miss.COLD
        if hash(block.token_ids) in self._parts:
            return Miss.COMPACTION if compacted else Miss.MOVED
        return Miss.COLD if block.part is Part.TASK else Miss.NEW


def _starts(token_ids: Sequence[int], *, size: int, adapter: int) -> list[int]:
    """Return a hash of all tokens up to the end of each full block of ``size`` tokens."""
    starts: list[int] = []
    before = adapter
    for end in range(size, len(token_ids) + 1, size):
        before = hash((before, tuple(token_ids[end - size : end])))
        starts.append(before)
    return starts


def _sequences(blocks: Sequence[Block], *, adapter: int) -> list[int]:
    """Return a hash of all parts of a prompt up to each of them."""
    hashes = itertools.accumulate(
        (block.token_ids for block in blocks),
        lambda before, ids: hash((before, ids)),
        initial=adapter,
    )
    return list(hashes)[1:]
