"""Whether to guess: always, or as long as it gains more than it wastes."""

from __future__ import annotations

from engine.speculation.payoff import MEMORY, PROBE, Payoff


def chances(payoff: Payoff, number: int) -> list[bool]:
    """Look at so many chances, and take those that are due."""
    found = []
    for _ in range(number):
        found.append(payoff.is_due())
        if found[-1]:
            payoff.begin()
    return found


def test_true_always_guesses_whatever_comes_of_it() -> None:
    payoff = Payoff("true")
    for right in (True, False, False, False):
        assert chances(payoff, 2 * PROBE) == [True] * 2 * PROBE
        payoff.judge(right=right, seconds=10.0)
    assert chances(payoff, 2 * PROBE) == [True] * 2 * PROBE


def test_auto_begins_with_guessing_and_goes_on_while_it_gains_more() -> None:
    payoff = Payoff("auto")
    assert chances(payoff, 100) == [True] * 100
    payoff.judge(right=True, seconds=4.0)  # gained 4
    payoff.judge(right=False, seconds=3.0)  # gained 3.6, wasted 3
    assert payoff.is_due()
    payoff.judge(right=False, seconds=0.5)  # gained 3.24, wasted 3.2
    assert payoff.is_due()
    payoff.judge(right=False, seconds=0.1)  # gained 2.916, wasted 2.98
    assert not payoff.is_due()
    payoff.judge(right=True, seconds=0.1)  # gained 2.7244, wasted 2.682
    assert payoff.is_due()


def test_where_it_does_not_pay_auto_takes_one_chance_in_sixteen() -> None:
    payoff = Payoff("auto")
    payoff.judge(right=False, seconds=1.0)
    assert PROBE == 16
    assert chances(payoff, 48) == ([False] * 15 + [True]) * 3
    # A probe that is right by enough switches it on again.
    payoff.judge(right=True, seconds=0.8)  # against 0.9 wasted
    assert chances(payoff, 16) == [False] * 15 + [True]
    payoff.judge(right=True, seconds=0.8)  # 1.52 against 0.81
    assert chances(payoff, 20) == [True] * 20


def test_what_lies_back_counts_less() -> None:
    payoff = Payoff("auto")
    payoff.judge(right=False, seconds=1000.0)
    rights = 0
    while not payoff.is_due():
        payoff.judge(right=True, seconds=100.0)
        rights += 1
        assert rights < 50
    # 100 (1 - m^n) / (1 - m) >= 1000 m^n, with m = 0.9: m^n <= 1/2, n = 7; the look before took
    # a chance each, none of them the sixteenth.
    assert MEMORY == 0.9
    assert rights == 7


def test_a_probe_that_there_is_no_room_for_is_made_at_the_next_chance() -> None:
    payoff = Payoff("auto")
    payoff.judge(right=False, seconds=1.0)
    assert chances(payoff, 15) == [False] * 15
    assert payoff.is_due() and payoff.is_due()  # no room
    assert chances(payoff, 16) == [True] + [False] * 15
