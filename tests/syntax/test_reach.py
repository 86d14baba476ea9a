"""What of a program nothing reaches."""

from __future__ import annotations

import ast

import pytest

from engine.syntax.reach import unreached_spans

PROGRAM = """\
import numpy as np

SCALE = shared(2)


def shared(x):
    return x + 1


def run():
    return helper(np.ones(3)) * SCALE


def helper(x):
    def inner():
        return Kept().of(x)
    return inner()


class Kept:
    def of(self, x):
        return -x


def perturb(x):
    return only_here(x)


def only_here(x):
    return x
"""


def unreached(text: str, entry: str = "run") -> list[str]:
    spans = unreached_spans(text, ast.parse(text), entry=entry)
    return [text[start:end].partition("(")[0].strip() for start, end in spans]


def test_what_nothing_reads_is_not_reached() -> None:
    assert unreached(PROGRAM) == ["def perturb", "def only_here"]
    (start, end), _ = unreached_spans(PROGRAM, ast.parse(PROGRAM), entry="run")
    assert PROGRAM[start:end] == "def perturb(x):\n    return only_here(x)\n"


def test_what_a_decorator_may_keep_is_reached() -> None:
    text = (
        "RULES = []\n\n\ndef rule(f):\n    RULES.append(f)\n    return f\n\n\n"
        "@rule\ndef double(x):\n    return helper(x)\n\n\ndef helper(x):\n    return 2 * x\n\n\n"
        "def unused(x):\n    return x\n\n\ndef run(x):\n    return RULES[0](x)\n"
    )
    assert unreached(text) == ["def unused"]


def test_it_depends_on_what_is_called() -> None:
    assert "def run" in unreached(PROGRAM, "perturb") and "def perturb" not in unreached(
        PROGRAM, "perturb"
    )


@pytest.mark.parametrize(
    "line",
    [
        "run = lambda: 1",  # what is called is no definition
        "def run():\n    return globals()['perturb']",
        "def run(f=perturb):\n    return f",
        "def run():\n    return perturb",
        "HOOKS = [perturb]\ndef run():\n    return HOOKS",
        "@perturb\ndef unused():\n    return 1\n\n\ndef run():\n    return 1",
        "class Kept(perturb(object)):\n    pass\n\n\ndef run():\n    return Kept()",
        "class Kept:\n    value = perturb(1)\n\n\ndef run():\n    return Kept.value",
        "def other(x=perturb(1)):\n    return x\n\n\ndef run():\n    return other()",
    ],
)
def test_what_may_be_reached_is(line: str) -> None:
    assert unreached(f"def perturb(x):\n    return x\n\n\n{line}\n") == []
