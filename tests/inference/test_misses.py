"""Why prompt tokens are computed: each reason by hand, with blocks of four tokens; and the sums."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core import Block, Miss, Part, Prompt
from engine.inference.misses import MissLedger

BLOCK = 4


def block(part: Part, *token_ids: int) -> Block:
    return Block(part=part, text="", token_ids=token_ids)


TASK = block(Part.TASK, 1, 2, 3, 4, 5, 6)
FIRST = block(Part.HISTORY, 10, 11, 12, 13, 14)
SECOND = block(Part.HISTORY, 20, 21, 22, 23, 24, 25, 26)
PARENT = block(Part.PARENT, 30, 31, 32)
ASK = block(Part.ASK, 40, 41)


def prompt(*blocks: Block) -> Prompt:
    return Prompt(blocks=blocks, stop=(), max_tokens=1)


def missed(
    *calls: Sequence[Block], cached: int = 0, compactions: Sequence[int] = ()
) -> dict[Miss, int]:
    """Return what a child of the last of some calls missed."""
    ledger = MissLedger(block_size=BLOCK)
    counts = [*compactions, *[0] * (len(calls) - len(compactions))]
    for blocks, count in zip(calls, counts, strict=True):
        misses = ledger.begin(prompt(*blocks), island=0, compactions=count)
        ledger.end(misses)
    return dict(misses.of_child(cached))


def test_all_of_a_first_call_is_cold_but_its_end() -> None:
    # 16 tokens: three blocks can be found; of the fourth one token has to be computed.
    call = (TASK, FIRST, PARENT, ASK)
    assert missed(call) == {Miss.COLD: 12, Miss.ALIGNMENT: 4}
    assert missed((*call, block(Part.ASK, 7))) == {Miss.COLD: 16, Miss.ALIGNMENT: 1}
    # Its siblings find it.
    assert missed(call, cached=12) == {Miss.ALIGNMENT: 4}
    assert missed(call, cached=4) == {Miss.COLD: 8, Miss.ALIGNMENT: 4}


def test_a_prompt_that_fills_no_block_is_all_end() -> None:
    assert missed((ASK,)) == {Miss.ALIGNMENT: 2}
    assert missed((block(Part.ASK, 1, 2, 3, 4),)) == {Miss.ALIGNMENT: 4}
    # It was a call all the same: what comes then is not the first one.
    new = block(Part.ASK, 7, 8, 9, 10, 11)
    assert missed((ASK,), (ASK, new)) == {Miss.ALIGNMENT: 2 + 3, Miss.NEW: 2}


def test_text_that_was_never_asked_is_new_and_the_rest_of_its_block_is_alignment() -> None:
    # | 1 2 3 4 | 5 6 . . : the second block held 5, 6, 30, 31 before.
    calls = ((TASK, PARENT, ASK), (TASK, SECOND, ASK))
    # 15 tokens: 5 and 6; 20 to 25; and 26, 40, 41 after the last full block.
    assert missed(*calls, cached=4) == {Miss.ALIGNMENT: 2 + 3, Miss.NEW: 6}


def test_text_that_an_earlier_call_held_behind_another_start_was_moved() -> None:
    # | 1 2 3 4 | 5 6 20 21 | 22 23 24 25 | 26 10 11 12 | 13 14 40 41
    calls = ((TASK, FIRST, SECOND, ASK), (TASK, SECOND, FIRST, ASK))
    assert missed(*calls, cached=4) == {Miss.ALIGNMENT: 2 + 4, Miss.MOVED: 10}


def test_what_a_compaction_moved_is_put_down_to_it_in_that_call_alone() -> None:
    # | 1 2 3 4 | 5 6 20 21 | 22 23 24 25 | 26 30 31 32 | 40 41
    calls = ((TASK, FIRST, SECOND, PARENT, ASK), (TASK, SECOND, PARENT, ASK))
    expected = {Miss.ALIGNMENT: 2 + 2, Miss.COMPACTION: 10}
    assert missed(*calls, cached=4, compactions=(3, 4)) == expected
    later = (*calls, (TASK, PARENT, SECOND, ASK))  # | 1 2 3 4 | 5 6 30 31 | 32 20 .. 22 | ..
    assert missed(*later, cached=4, compactions=(3, 4, 4)) == {Miss.ALIGNMENT: 4, Miss.MOVED: 10}


def test_a_session_that_begins_after_compactions_is_cold() -> None:
    assert missed((TASK, FIRST, ASK), compactions=(5,)) == {Miss.COLD: 12, Miss.ALIGNMENT: 1}
    # What another island asked before was moved by no compaction of this one's.
    ledger = MissLedger(block_size=BLOCK)
    ledger.end(ledger.begin(prompt(TASK, FIRST, SECOND, ASK), island=0, compactions=5))
    second = ledger.begin(prompt(TASK, SECOND, FIRST, ASK), island=1, compactions=3)
    assert second.of_child(4) == {Miss.ALIGNMENT: 2 + 4, Miss.MOVED: 10}


def test_text_that_was_asked_for_behind_the_same_start_was_evicted() -> None:
    call = (TASK, FIRST, SECOND, ASK)  # 20 tokens: four blocks and four tokens
    assert missed(call, call) == {Miss.EVICTED: 16, Miss.ALIGNMENT: 4}
    assert missed(call, call, cached=8) == {Miss.EVICTED: 8, Miss.ALIGNMENT: 4}
    longer = (*call, block(Part.ASK, 50, 51))
    # The last block of the first call was full too: vLLM keeps it, though it may not serve it.
    assert missed(call, longer) == {Miss.EVICTED: 20, Miss.ALIGNMENT: 2}


def test_what_a_call_under_way_holds_is_not_evicted() -> None:
    ledger, call = MissLedger(block_size=BLOCK), prompt(TASK, FIRST, SECOND, ASK)
    longer = prompt(*call.blocks, block(Part.ASK, 50, 51))
    first = ledger.begin(call, island=0, compactions=0)
    second = ledger.begin(longer, island=1, compactions=0)
    assert second.of_child(0) == {Miss.CONCURRENT: 20, Miss.ALIGNMENT: 2}
    ledger.end(first)
    # The other one is under way still.
    third = ledger.begin(call, island=0, compactions=0)
    assert third.of_child(0) == {Miss.CONCURRENT: 16, Miss.ALIGNMENT: 4}
    ledger.end(second)
    ledger.end(third)
    fourth = ledger.begin(call, island=0, compactions=0)
    assert fourth.of_child(0) == {Miss.EVICTED: 16, Miss.ALIGNMENT: 4}


def test_another_task_is_cold_and_what_follows_it_is_not() -> None:
    other = block(Part.TASK, 7, 7, 7, 7, 7, 7)
    # | 7 7 7 7 | 7 7 10 11 | 12 13 14 40 | 41
    calls = ((TASK, FIRST, ASK), (other, FIRST, ASK))
    assert missed(*calls) == {Miss.COLD: 6, Miss.MOVED: 6, Miss.ALIGNMENT: 1}
    again = (*calls, (TASK, PARENT, ASK), (other, PARENT, ASK))
    # | 7 7 7 7 | 7 7 30 31 | 32 40 41
    assert missed(*again, cached=4) == {Miss.ALIGNMENT: 2 + 3, Miss.MOVED: 2}


def test_a_part_that_begins_as_an_earlier_one_did_is_new_as_a_whole() -> None:
    longer = block(Part.ASK, 40, 41, 42, 43)
    # | 1 2 3 4 | 5 6 40 41 | 42 43
    assert missed((TASK, ASK, FIRST), (TASK, longer)) == {
        Miss.EVICTED: 8,
        Miss.ALIGNMENT: 2,
    }
    # | 1 2 3 4 | 5 6 40 41 | 42 43 30 31 | 32
    assert missed((TASK, ASK, FIRST), (TASK, longer, PARENT)) == {
        Miss.EVICTED: 8,
        Miss.NEW: 4,
        Miss.ALIGNMENT: 1,
    }


def test_the_same_tokens_at_another_place_are_another_start() -> None:
    same = block(Part.HISTORY, 10, 10, 10, 10)
    # | 10 10 10 10 | 10 10 10 10 | 10 10 10 10 | 40 41
    assert missed((same, ASK), (same, same, same, ASK)) == {
        Miss.EVICTED: 4,
        Miss.MOVED: 8,
        Miss.ALIGNMENT: 2,
    }


def test_a_count_within_a_block_counts_from_there() -> None:
    # A store of KV outside the engine may serve all but the last token of a prompt.
    call = (TASK, FIRST, PARENT, ASK)
    assert missed(call, cached=15) == {Miss.ALIGNMENT: 1}
    assert missed(call, cached=10) == {Miss.COLD: 2, Miss.ALIGNMENT: 4}


def test_a_child_of_which_all_was_cached_missed_nothing() -> None:
    assert missed((TASK, FIRST), cached=11) == {}


def test_a_prompt_without_tokens_has_no_misses() -> None:
    assert missed((TASK, ASK), (block(Part.TASK),)) == {}


blocks = st.builds(block, st.sampled_from(Part), *[st.integers(0, 3)] * 3) | st.sampled_from(
    [TASK, FIRST, SECOND, PARENT, ASK]
)
calls = st.lists(
    st.tuples(st.lists(blocks, min_size=1, max_size=6), st.integers(0, 2)), min_size=1, max_size=8
)


@given(calls, st.integers(1, 9), st.data())
def test_the_reasons_add_up_to_what_was_computed(
    calls: list[tuple[list[Block], int]], size: int, data: st.DataObject
) -> None:
    ledger = MissLedger(block_size=size)
    for number, (parts, compactions) in enumerate(calls):
        asked = prompt(*parts)
        misses = ledger.begin(asked, island=0, compactions=compactions)
        length = len(asked.token_ids)
        findable = (length - 1) // size
        cached = data.draw(st.integers(0, findable)) * size
        reasons = misses.of_child(cached)
        assert sum(reasons.values()) == length - cached
        assert all(count > 0 for count in reasons.values())
        assert reasons[Miss.ALIGNMENT] >= length - findable * size
        if number == 0:
            assert set(reasons) <= {Miss.COLD, Miss.ALIGNMENT}
        fewer = misses.of_child(findable * size)
        assert fewer == {Miss.ALIGNMENT: length - findable * size}


@given(calls)
def test_a_call_made_again_finds_all_that_it_can(calls: list[tuple[list[Block], int]]) -> None:
    ledger = MissLedger(block_size=BLOCK)
    for parts, compactions in calls:
        ledger.end(ledger.begin(prompt(*parts), island=0, compactions=compactions))
    for parts, compactions in calls:
        again = ledger.begin(prompt(*parts), island=0, compactions=compactions)
        ledger.end(again)
        assert set(again.of_child(0)) <= {Miss.EVICTED, Miss.ALIGNMENT}


@pytest.mark.parametrize("size", [1, 16, 64])
def test_the_size_of_a_block_is_the_caches(size: int) -> None:
    long = block(Part.TASK, *range(100))
    ledger = MissLedger(block_size=size)
    ends = 100 - (99 // size) * size
    assert ledger.begin(prompt(long), island=0, compactions=0).of_child(0) == {
        Miss.COLD: 100 - ends,
        Miss.ALIGNMENT: ends,
    }


def test_islands_compact_their_histories_each_by_itself() -> None:
    ledger = MissLedger(block_size=BLOCK)
    asked, moved = prompt(TASK, FIRST, PARENT, ASK), prompt(TASK, PARENT, FIRST, ASK)
    ledger.begin(asked, island=0, compactions=3)
    ledger.begin(asked, island=1, compactions=0)
    assert Miss.COMPACTION not in ledger.begin(moved, island=0, compactions=3).of_child(4)
    other = prompt(TASK, FIRST, ASK, PARENT)
    assert Miss.COMPACTION in ledger.begin(other, island=1, compactions=1).of_child(4)


def test_what_another_adapter_computed_is_computed_again() -> None:
    ledger = MissLedger(block_size=BLOCK)

    def missed_by(adapter: int, *blocks: Block) -> dict[Miss, int]:
        misses = ledger.begin(prompt(*blocks), island=0, compactions=0, adapter=adapter)
        ledger.end(misses)
        return dict(misses.of_child(0))

    # Eleven tokens: two blocks can be found.
    assert missed_by(0, TASK, FIRST) == {Miss.COLD: 8, Miss.ALIGNMENT: 3}
    assert missed_by(1, TASK, FIRST) == {Miss.ADAPTER: 8, Miss.ALIGNMENT: 3}
    assert missed_by(1, TASK, FIRST) == {Miss.EVICTED: 8, Miss.ALIGNMENT: 3}
    # Eighteen: four; the second part is new, and under any adapter.
    assert missed_by(2, TASK, SECOND, FIRST) == {
        Miss.ADAPTER: 6,
        Miss.NEW: 7,
        Miss.MOVED: 3,
        Miss.ALIGNMENT: 2,
    }
    assert missed_by(0, TASK, FIRST) == {Miss.EVICTED: 8, Miss.ALIGNMENT: 3}
