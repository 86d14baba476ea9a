"""Whether to guess: always, never, or as long as it gains more than it wastes."""

from __future__ import annotations

from engine.pipeline.speculation import MEMORY, PROBE, Speculation


def chances(speculation: Speculation, number: int) -> list[bool]:
    """Look at so many chances, and take those that are due."""
    found = []
    for _ in range(number):
        found.append(speculation.is_due())
        if found[-1]:
            speculation.begin()
    return found


def test_true_always_guesses_and_false_never_whatever_comes_of_it() -> None:
    for mode, expected in (("true", True), ("false", False)):
        speculation = Speculation(mode)
        for right in (True, False, False, False):
            assert chances(speculation, 2 * PROBE) == [expected] * 2 * PROBE
            speculation.judge(right=right, seconds=10.0)
        assert chances(speculation, 2 * PROBE) == [expected] * 2 * PROBE


def test_auto_begins_with_guessing_and_goes_on_while_it_gains_more() -> None:
    speculation = Speculation("auto")
    assert chances(speculation, 100) == [True] * 100
    speculation.judge(right=True, seconds=4.0)  # gained 4
    speculation.judge(right=False, seconds=3.0)  # gained 3.6, wasted 3
    assert speculation.is_due()
    speculation.judge(right=False, seconds=0.5)  # gained 3.24, wasted 3.2
    assert speculation.is_due()
    speculation.judge(right=False, seconds=0.1)  # gained 2.916, wasted 2.98
    assert not speculation.is_due()
    speculation.judge(right=True, seconds=0.1)  # gained 2.7244, wasted 2.682
    assert speculation.is_due()


def test_where_it_does_not_pay_auto_takes_one_chance_in_sixteen() -> None:
    speculation = Speculation("auto")
    speculation.judge(right=False, seconds=1.0)
    assert PROBE == 16
    assert chances(speculation, 48) == ([False] * 15 + [True]) * 3
    # A probe that is right by enough switches it on again.
    speculation.judge(right=True, seconds=0.8)  # against 0.9 wasted
    assert chances(speculation, 16) == [False] * 15 + [True]
    speculation.judge(right=True, seconds=0.8)  # 1.52 against 0.81
    assert chances(speculation, 20) == [True] * 20


def test_what_lies_back_counts_less() -> None:
    speculation = Speculation("auto")
    speculation.judge(right=False, seconds=1000.0)
    rights = 0
    while not speculation.is_due():
        speculation.judge(right=True, seconds=100.0)
        rights += 1
        assert rights < 50
    # 100 (1 - m^n) / (1 - m) >= 1000 m^n, with m = 0.9: m^n <= 1/2, n = 7; the look before took
    # a chance each, none of them the sixteenth.
    assert MEMORY == 0.9
    assert rights == 7


def test_a_probe_that_there_is_no_room_for_is_made_at_the_next_chance() -> None:
    speculation = Speculation("auto")
    speculation.judge(right=False, seconds=1.0)
    assert chances(speculation, 15) == [False] * 15
    assert speculation.is_due() and speculation.is_due()  # no room
    assert chances(speculation, 16) == [True] + [False] * 15
