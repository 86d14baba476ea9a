"""The window: what joins, in which order, and what a compaction leaves."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core import Candidate, Direction
from engine.search.window import Window


def candidate(name: str, score: float, *lines: str) -> Candidate:
    return Candidate(id=name, program="\n".join(lines) or name, score=score)


def window(kept: int = 100, growth: int = 0, direction: Direction = Direction.MAXIMISE) -> Window:
    """Return a window in which the size of a program is that of its text, in characters."""
    return Window(kept=kept, growth=growth, size=len, direction=direction)


def names(shown: Sequence[Candidate]) -> str:
    return "".join(each.id for each in shown)


def size(shown: Sequence[Candidate]) -> int:
    return sum(len(each.program) for each in shown)


# Who joins.


def test_the_best_of_each_iteration_joins_at_the_end() -> None:
    made = window()
    made.advance([candidate("a", 0.5)])
    made.advance([candidate("b", 0.1), candidate("c", 0.7), candidate("d", 0.6)])
    made.advance([])
    made.advance([candidate("e", 0.6)])
    assert names(made.shown) == "ace"
    assert made.compactions == 0


def test_where_the_score_is_minimised_the_lowest_joins() -> None:
    made = window(direction=Direction.MINIMISE)
    made.advance([candidate("a", 0.5)])
    made.advance([candidate("b", 0.7), candidate("c", 0.1)])
    assert names(made.shown) == "ac"


def test_a_score_that_is_shown_teaches_nothing() -> None:
    made = window()
    made.advance([candidate("a", 0.5)])
    made.advance([candidate("b", 0.5)])
    made.advance([candidate("c", 0.1), candidate("d", 0.5)])
    assert names(made.shown) == "a"


@pytest.mark.parametrize("direction", Direction)
def test_one_that_is_worse_than_all_joins_only_a_window_that_is_not_full(
    direction: Direction,
) -> None:
    sign = 1 if direction is Direction.MAXIMISE else -1
    made = window(kept=3, growth=5, direction=direction)
    for name, score in (("a", 0.5), ("b", 0.4), ("c", 0.3), ("d", 0.2), ("e", 0.35)):
        made.advance([candidate(name, sign * score)])
    assert names(made.shown) == "abce"


def test_a_window_of_no_size_shows_nothing() -> None:
    made = window(kept=0, growth=1000)
    made.advance([candidate("a", 0.5)])
    assert made.shown == () and made.compactions == 0


def test_a_program_that_could_not_be_kept_does_not_join() -> None:
    made = window(kept=4, growth=100)
    made.advance([candidate("a", 0.5, "12345")])
    assert made.shown == ()
    made.advance([candidate("b", 0.4, "1234")])
    made.advance([candidate("c", 0.6, "12345")])
    assert names(made.shown) == "b" and made.compactions == 0


# What a compaction leaves.


def test_a_window_is_compacted_once_it_has_outgrown_its_growth() -> None:
    made = window(kept=4, growth=2)
    seen = []
    for number in range(9):
        made.advance([candidate("abcdefghi"[number], number / 10)])
        seen.append((len(made.shown), made.compactions))
    assert seen == [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (4, 1), (5, 1), (6, 1)]


def test_a_compaction_keeps_the_best_and_the_most_different_by_hand() -> None:
    """Sizes are 8 each, and 27 are kept: three of the five. w = 1/2.

    Scores from 0 to 1: a 0, b 0.5, c 0.75, d 1, e 0.875. First d, the best. The lines of b are
    those of d but for one (distance 1 - 3/5 = 0.4), c has two of them (1 - 2/6 = 2/3), e has all
    (0) and a has none (1). So the means of score and distance are a 0.5, b 0.45, c 0.7083 and
    e 0.4375: c. The smallest distances now are a 1, b min(0.4, 1 - 2/6) = 0.4 and e 0, so a is
    next. Then there is no room.
    """
    made = window(kept=27, growth=8)
    for each in (
        candidate("a", 0.0, "k", "l", "m", "n;"),
        candidate("b", 0.4, "1", "2", "3", "x;"),
        candidate("c", 0.6, "1", "2", "y", "z;"),
        candidate("d", 0.8, "1", "2", "3", "4;"),
    ):
        made.advance([each])
    assert names(made.shown) == "abcd" and made.compactions == 0
    made.advance([candidate("e", 0.7, "4;", "3", "2", "1")])
    assert made.compactions == 1
    assert names(made.shown) == "acd"  # in the order in which they joined


def test_what_does_not_fit_makes_room_for_what_does() -> None:
    made = window(kept=10, growth=0)
    made.advance([candidate("a", 0.1, "a" * 3)])
    made.advance([candidate("b", 0.8, "b" * 7)])
    made.advance([candidate("c", 0.9, "c" * 6)])
    # c stays; of the others b is better, but 6 + 7 > 10.
    assert names(made.shown) == "ac" and made.compactions == 1


def test_equal_ones_stay_in_the_order_in_which_they_joined() -> None:
    made = window(kept=2, growth=1)
    for name, score in (("a", 0.5), ("b", 0.4), ("c", 0.6)):
        made.advance([candidate(name, score, "x")])
    assert names(made.shown) == "abc"
    made.advance([candidate("d", 0.7, "x")])
    assert names(made.shown) == "cd"  # all are alike, so the best ones


scores = st.integers(-20, 20).map(lambda number: number / 8)
programs = st.lists(st.sampled_from(["x", "yy", "zzz", " x"]), max_size=6).map("\n".join)
iterations = st.lists(st.lists(st.tuples(scores, programs), max_size=4), max_size=25)
directions = st.sampled_from(Direction)


def arrived(iterations: list[list[tuple[float, str]]]) -> list[list[Candidate]]:
    return [
        [
            Candidate(id=f"{number}.{index}", program=program, score=score)
            for index, (score, program) in enumerate(children)
        ]
        for number, children in enumerate(iterations)
    ]


@given(iterations, st.integers(0, 40), st.integers(0, 40), directions)
def test_a_window_only_grows_at_its_end_and_stays_within_its_size(
    iterations: list[list[tuple[float, str]]], kept: int, growth: int, direction: Direction
) -> None:
    made = window(kept, growth, direction)
    for candidates in arrived(iterations):
        before, compactions = made.shown, made.compactions
        made.advance(candidates)
        assert made.compactions - compactions in (0, 1)
        if made.compactions == compactions:
            assert made.shown[: len(before)] == before
            assert len(made.shown) - len(before) in (0, 1)
            assert size(made.shown) <= kept + growth
        else:
            assert size(made.shown) <= kept
            places = [before.index(each) for each in made.shown if each in before]
            assert places == sorted(places)
            best = [*before, *candidates]
            best = [each for each in best if len(each.program) <= kept]
            top = max if direction is Direction.MAXIMISE else min
            assert top(best, key=lambda each: each.score).score in {
                each.score for each in made.shown
            }
        assert len({each.score for each in made.shown}) == len(made.shown)
        assert set(made.shown) <= {*before, *candidates}


@given(iterations, st.integers(0, 40), st.integers(0, 40), directions)
def test_the_same_candidates_give_the_same_window(
    iterations: list[list[tuple[float, str]]], kept: int, growth: int, direction: Direction
) -> None:
    one, other = window(kept, growth, direction), window(kept, growth, direction)
    for candidates in arrived(iterations):
        one.advance(candidates)
    for candidates in arrived(iterations):
        other.advance(candidates)
    assert (one.shown, one.compactions) == (other.shown, other.compactions)


@given(iterations, st.integers(0, 40), st.integers(0, 40))
def test_to_minimise_is_to_maximise_the_negative(
    iterations: list[list[tuple[float, str]]], kept: int, growth: int
) -> None:
    up, down = window(kept, growth), window(kept, growth, Direction.MINIMISE)
    for candidates in arrived(iterations):
        up.advance(candidates)
        down.advance(
            [Candidate(id=each.id, program=each.program, score=-each.score) for each in candidates]
        )
        assert [each.id for each in up.shown] == [each.id for each in down.shown]
