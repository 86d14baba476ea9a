"""Features: what is measured of a program, and the bin that a value falls into."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core import Evaluation, Failure, Feature, UserError
from engine.search.features import MEASURES, cell_of, dimensions, measure
from engine.syntax import read

PROGRAM = """
def run(n):
    total = 0
    for i in range(n):
        while total < i:
            total += f(i)
    if total:
        return [g(x) for x in range(3)]
    return total if n else 0
"""


def test_what_is_measured() -> None:
    measured = measure(read(PROGRAM), metrics={"score": 0.5, "snr": 3.0})
    assert measured["characters"] == len(PROGRAM)
    assert measured["loops"] == 3  # for, while, and the one of the comprehension
    assert measured["branches"] == 2  # if, and the conditional expression
    assert measured["calls"] == 4  # range, f, g, range
    assert measured["score"] == 0.5 and measured["snr"] == 3.0
    assert set(measured) == {*MEASURES, "score", "snr"}


def test_nodes_and_depth_by_hand() -> None:
    # Module, Assign, Name, Store, BinOp, Constant, Add, Constant; three of them below each other.
    measured = measure(read("x = 1 + 2"), metrics={})
    assert (measured["nodes"], measured["depth"]) == (8, 3)
    assert measure(read(""), metrics={})["depth"] == 0


def test_layout_and_comments_count_for_the_length_alone() -> None:
    one, other = (
        measure(read(text), metrics={}) for text in ("x=1", "# why\nx  =  1  # because\n")
    )
    assert one.pop("characters") < other.pop("characters")
    assert one == other


def test_a_metric_never_hides_what_is_measured() -> None:
    assert measure(read("x = 1"), metrics={"calls": 99.0})["calls"] == 0


@pytest.mark.parametrize("program", ["x = = 1", "x\x00", "(" * 300 + ")" * 300, "\ud800"])
def test_of_what_is_no_program_the_metrics_are_left(program: str) -> None:
    assert measure(read(program), metrics={"snr": 3.0, "nodes": 4.0}) == {"snr": 3.0}


# A program's cell.

GRID = (
    Feature(name="calls", low=0, high=4, bins=4),
    Feature(name="snr", low=-1, high=1, bins=2),
)


def scored(**metrics: float) -> Evaluation:
    return Evaluation(score=0.5, failure=None, metrics=metrics)


def test_a_cell_is_one_bin_of_each_feature_in_their_order() -> None:
    assert cell_of(read(PROGRAM), scored(snr=0.0, score=9.0), features=GRID) == (3, 1)
    assert cell_of(read(PROGRAM), scored(snr=-math.inf), features=GRID) == (3, 0)
    assert cell_of(read("x = 1"), scored(snr=math.inf), features=GRID[::-1]) == (1, 0)
    assert cell_of(read("x = 1"), scored(), features=()) == ()


@pytest.mark.parametrize(
    ("program", "metrics"),
    [("x = 1", {}), ("x = 1", {"snr": math.nan}), ("x = = 1", {"snr": 0.0, "calls": 1.0})],
)
def test_where_a_feature_is_missing_there_is_no_cell(
    program: str, metrics: dict[str, float]
) -> None:
    assert cell_of(read(program), scored(**metrics), features=GRID) is None


def test_without_an_archive_or_a_score_there_is_no_cell() -> None:
    failed = Evaluation(score=None, failure=Failure.ERROR, metrics={"snr": 0.0})
    assert cell_of(read("x = 1"), failed, features=GRID) is None
    assert cell_of(read("x = 1"), scored(snr=0.0), features=None) is None


# Which features an archive has.

DECLARED = (Feature(name="snr", low=0, high=10, bins=4),)


def test_the_structure_ranges_from_the_initial_program_by_hand() -> None:
    """8 nodes and 3 levels: bins of a quarter, up to 4 times the one and twice the other."""
    nodes, depth = dimensions("structure", initial_program="x = 1 + 2", declared=DECLARED) or ()
    assert nodes == Feature(name="nodes", low=0, high=32, bins=16)
    assert depth == Feature(name="depth", low=0, high=6, bins=8)
    assert (nodes.bin(8), depth.bin(3)) == (4, 4)


def test_a_structure_has_ranges_whatever_the_initial_program_is() -> None:
    for program in ("", "x = = 1"):
        made = dimensions("structure", initial_program=program, declared=()) or ()
        assert [(each.high, each.bins) for each in made] == [(4, 16), (2, 8)]


def test_a_problem_names_its_own_features_or_the_error_says_so() -> None:
    assert dimensions("problem", initial_program="", declared=DECLARED) == DECLARED
    assert dimensions("none", initial_program="", declared=DECLARED) is None
    with pytest.raises(UserError, match="this problem's has none; add some") as refusal:
        dimensions("problem", initial_program="", declared=())
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (-math.inf, 0),
        (-5, 0),
        (0, 0),
        (2.4, 0),
        (2.5, 1),
        (5, 2),
        (9.9, 3),
        (10, 3),
        (11, 3),
        (math.inf, 3),
    ],
)
def test_the_bins_of_a_range_by_hand(value: float, number: int) -> None:
    assert Feature(name="snr", low=0, high=10, bins=4).bin(value) == number


def test_one_bin_holds_everything() -> None:
    feature = Feature(name="snr", low=-1, high=1, bins=1)
    assert {feature.bin(value) for value in (-9, -1, 0, 1, 9)} == {0}


@pytest.mark.parametrize(
    ("low", "high", "bins"),
    [(0, 0, 3), (1, 0, 3), (0, math.inf, 3), (math.nan, 1, 3), (-1e308, 1e308, 3), (0, 1, 0)],
)
def test_a_feature_without_a_range_or_bins_is_refused(low: float, high: float, bins: int) -> None:
    with pytest.raises(ValueError, match="feature 'snr'"):
        Feature(name="snr", low=low, high=high, bins=bins)


def test_what_is_not_a_number_has_no_bin() -> None:
    with pytest.raises(ValueError, match="feature 'snr' is not a number"):
        Feature(name="snr", low=0, high=1, bins=3).bin(math.nan)


numbers = st.floats(allow_nan=False)


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300), st.integers(1, 50), numbers, numbers)
def test_bins_are_in_range_and_ascend_with_the_value(
    one: float, other: float, bins: int, value: float, larger: float
) -> None:
    if one == other:
        return
    feature = Feature(name="snr", low=min(one, other), high=max(one, other), bins=bins)
    assert 0 <= feature.bin(min(value, larger)) <= feature.bin(max(value, larger)) < bins
    assert feature.bin(feature.low) == 0 and feature.bin(feature.high) == bins - 1
