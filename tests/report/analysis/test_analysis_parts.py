"""Medians, intervals, distances and tables, against values from elsewhere or by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.report.analysis.distance import program_distance
from engine.report.analysis.figures import Share, Table, mean, median, wilson


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [  # Newcombe, Statistics in Medicine 17 (1998), p. 857-872, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilsons_interval_is_as_published(hits: int, trials: int, low: float, high: float) -> None:
    assert wilson(hits, trials) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))
    mirrored = wilson(trials - hits, trials)
    assert mirrored == (pytest.approx(1 - high, abs=5e-5), pytest.approx(1 - low, abs=5e-5))


@given(st.integers(1, 10**9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilsons_interval_holds_the_rate(case: tuple[int, int]) -> None:
    hits, trials = case
    low, high = wilson(hits, trials)
    assert 0 <= low <= hits / trials <= high <= 1


def test_medians_and_means_by_hand() -> None:
    assert median([]) is None and mean([]) is None
    assert median([3.0]) == mean([3.0]) == 3.0
    assert median([4.0, 1.0, 2.0, 3.0]) == 2.5
    assert mean([1e308, 1.5e308]) == 1.25e308
    assert median([1e308, 1.5e308]) == 1.25e308
    assert median([2, 2]) == 2


@pytest.mark.parametrize(
    ("program", "other", "distance"),
    [
        ("a b c d", "a b c d", 0.0),
        ("a b c d", "a\n  b c\td\n", 0.0),
        ("a b c d", "a b c e", 2 / 3),  # abc, bcd and abc, bce: 1 of 3 is in both
        ("x = f(1)", "x = f(2)", 2 / 3),  # x=f =f( f(1 (1) and x=f =f( f(2 (2): 2 of 6
        ("a", "a", 0.0),
        ("a", "a b", 1.0),
        ("", "a b c", 1.0),
        ("", "", 0.0),
        ("'\ud800 \0", "'\ud800 \0", 0.0),  # whatever a model writes
    ],
)
def test_program_distances_by_hand(program: str, other: str, distance: float) -> None:
    assert program_distance(program, other) == pytest.approx(distance)
    assert program_distance(other, program) == pytest.approx(distance)


def test_a_table_is_lines_of_aligned_columns() -> None:
    table = Table(
        title="Title",
        rows=[
            {"name": "a[b]", "count": 5, "share": Share(0.5), "score_so_far": 0.123456789},
            {"name": "c", "count": 123456789, "share": None, "score_so_far": None},
        ],
        note="A note.",
    )
    assert table.text().splitlines() == [
        "Title",
        "  name      count  share  score so far",
        "  a[b]          5  50.0%      0.123457",
        "  c     123456789      -             -",
        "A note.",
    ]
    assert Table(title="Title", rows=[]).text() == "Title: nothing to show\n"
