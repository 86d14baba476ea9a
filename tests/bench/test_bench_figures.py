from __future__ import annotations

import pytest

from bench.figures import milliseconds, percentile, spread
from bench.options import number, read_options
from engine.core import UserError


@pytest.mark.parametrize(("percent", "expected"), [(50, 50), (99, 99), (99.5, 100), (0, 1)])
def test_a_percentile_is_one_of_the_values(percent: float, expected: int) -> None:
    assert percentile(range(100, 0, -1), percent) == expected


def test_the_99th_percentile_of_few_values_is_the_largest() -> None:
    assert percentile([3.0, 1.0, 2.0], 99) == 3.0


def test_figures_are_in_the_stated_units() -> None:
    figures = {"median": 2.0, "mean": 4.0, "p95": 9.0, "p99": 9.0, "n": 3}
    assert milliseconds([0.001, 0.002, 0.009]) == figures
    assert spread([4.0, 1.0, 2.0]) == {"median": 2.0, "low": 1.0, "high": 4.0}


def test_options_replace_defaults() -> None:
    assert read_options(["b=2"], {"a": "0", "b": "1"}, usage="") == {"a": "0", "b": "2"}


@pytest.mark.parametrize("argument", ["c=1", "a", "=1", ""])
def test_an_unknown_option_is_named(argument: str) -> None:
    with pytest.raises(UserError, match=repr(argument)):
        read_options([argument], {"a": "0"}, usage="")


def test_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        read_options(["--help"], {}, usage="how to use it")
    assert exit_.value.code == 0
    assert capsys.readouterr().out == "how to use it"


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "many", ""])
def test_only_numbers_above_0_are_taken(text: str) -> None:
    with pytest.raises(UserError, match="seconds="):
        number({"seconds": text}, "seconds")
