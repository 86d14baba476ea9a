"""Width: outcomes, the fixed K and TurboEvolve's schedule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.search.widths import IterationOutcome
from engine.search.widths.fixed import FixedWidth
from engine.search.widths.turboevolve import TurboEvolveWidth


def outcome(iteration: int, improved: int = 0) -> IterationOutcome:
    return IterationOutcome(
        island=0,
        iteration=iteration,
        parent="initial",
        children=8,
        improved=improved,
        model_seconds=1.0,
        computed_tokens=500,
        repeated_tokens=70,
        decode_steps=30,
        generated_tokens=160,
        evaluation_seconds=0.1,
    )


def widths(replaced: str) -> list[int]:
    """Return K before the first iteration and after each; 1 is one that replaced a cell."""
    policy = TurboEvolveWidth()
    found = [policy.k(iteration=0)]
    for iteration, mark in enumerate(replaced):
        policy.tell(outcome(iteration, improved=int(mark)))
        found.append(policy.k(iteration=iteration + 1))
    return found


# What an outcome may say.


# Fixed.


def test_a_fixed_width_stays() -> None:
    policy = FixedWidth(k=8)
    for iteration in range(10):
        policy.tell(outcome(iteration, improved=iteration % 2))
        assert policy.k(iteration=iteration + 1) == 8


# TurboEvolve.


@pytest.mark.parametrize("first", ["000", "111", "010"])
def test_k_init_stands_for_the_first_three_iterations_and_their_window(first: str) -> None:
    assert widths(first) == [5, 5, 5, 5]
    assert widths(first + "000") == [5, 5, 5, 5, 5, 5, 7]


@pytest.mark.parametrize(
    ("window", "k"),
    [
        ("000", 7),
        ("100", 5),
        ("010", 5),
        ("001", 5),
        ("110", 5),
        ("101", 5),
        ("011", 5),
        ("111", 3),
    ],
)
def test_a_window_widens_narrows_or_keeps(window: str, k: int) -> None:
    assert widths("000" + window)[-1] == k


def test_k_keeps_to_its_bounds() -> None:
    assert widths("000" + "000" * 3)[6::3] == [7, 7, 7]
    assert widths("000" + "111" * 4)[6::3] == [3, 1, 1, 1]
    assert widths("000" + "111" * 2 + "000" * 4)[6::3] == [3, 1, 3, 5, 7, 7]


def test_windows_do_not_overlap() -> None:
    # 1, 000, 11 | as windows: 100, 011; sliding ones would have widened at 000.
    assert widths("000" + "100" + "011") == [5] * 10


def test_several_children_that_replaced_cells_make_one_iteration_that_did() -> None:
    policy = TurboEvolveWidth()
    for iteration, improved in enumerate((0, 0, 0, 3, 0, 0)):
        policy.tell(outcome(iteration, improved=improved))
    assert policy.k(iteration=6) == 5


def test_the_numbers_of_an_islands_iterations_may_have_gaps() -> None:
    policy = TurboEvolveWidth()
    for iteration in (1, 5, 6, 20, 21, 40):
        policy.tell(outcome(iteration))
    assert policy.k(iteration=41) == 7


@given(st.text(alphabet="01", max_size=60))
def test_k_is_what_the_rule_says_of_each_window(replaced: str) -> None:
    expected = 5
    for begin in range(3, len(replaced) - 2, 3):
        c = replaced[begin : begin + 3].count("1")
        if c == 0:
            expected = min(7, expected + 2)
        elif c == 3:
            expected = max(1, expected - 2)
    assert widths(replaced)[-1] == expected
