"""Bad options of benchmarks: one line that says what to do, and exit code 2."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.options import whole_number, whole_numbers
from engine.core import UserError

ROOT = Path(__file__).parents[2]


def bench(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"bench.{name}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("dashboard", ["problem=nope"], "unknown problem 'nope'; valid problems: circle_packing"),
        ("dashboard", ["rate=x"], "rate=x is no whole number, 1 or more"),
        ("experiments", ["name=nope"], "name=nope is none of k, stale"),
        ("experiments", ["table=/nonexistent"], "table=/nonexistent can't be read as YAML: "),
        ("experiments.analyses", [], "give name=NAME, of letters, digits and dashes"),
        ("experiments.page", ["table=/nonexistent"], "table=/nonexistent can't be read as YAML: "),
        ("experiments.pools", ["top=0.5"], "top=0.5 is no whole number, 1 or more"),
        ("fanout", ["foo"], "'foo' is no option; there are: "),
        ("fill", ["rounds=0.5"], "rounds=0.5 is no whole number, 1 or more"),
        ("operators", ["foo"], "'foo' can't be read; arguments have the form key=value"),
        ("operators", ["operators=foo"], "search.operators.foo is no operator"),
        ("operators", ["seeds=-1"], "seeds=-1 is no whole number, 0 or more"),
        ("outposts", ["outposts=1,x"], "outposts=x is no whole number, 0 or more"),
        ("report", ["problem=nope"], "unknown problem 'nope'; valid problems: circle_packing"),
        ("report", ["rounds=0.5"], "rounds=0.5 is no whole number, 1 or more"),
        ("restart", ["seed=x"], "seed=x is no whole number, 0 or more"),
        ("scale", [], "costs= is missing; give costs=FILE"),
        ("scale", ["costs=/nonexistent"], "costs='/nonexistent' with set='' has no costs: "),
        ("scale.check", ["workers=0"], "workers=0 is no whole number, 1 or more"),
        ("scale.measure", ["foo=1"], "'foo=1' is no option; there are: "),
        ("scale.page", ["results=/nonexistent"], "/nonexistent/outposts.json can't be read: "),
        ("scale.page", ["to=/dev/null"], "/dev/null/images/scale can't be made: "),
        ("timeline", ["rounds=0"], "rounds=0 is no whole number, 1 or more"),
    ],
)
def test_a_bad_option_is_one_line(name: str, arguments: Sequence[str], words: str) -> None:
    done = bench(name, *arguments)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("error: ") and len(done.stderr.splitlines()) == 1
    assert words in done.stderr


def test_help_is_the_docstring() -> None:
    done = bench("timeline", "--help")
    assert done.returncode == 0 and done.stdout.startswith("Question: ")


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "1e3", "\u00b2", "9" * 5000])
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(UserError, match=r"k=.* is no whole number, 0 or more"):
        whole_number({"k": text}, "k", least=0)


def test_several_whole_numbers() -> None:
    assert whole_numbers({"k": "0,12,3"}, "k", least=0) == [0, 12, 3]
    with pytest.raises(UserError, match="k=0 is no whole number, 1 or more"):
        whole_numbers({"k": "2,0"}, "k")
