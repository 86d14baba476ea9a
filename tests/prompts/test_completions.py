"""What every kind of completion makes of a parent with a gap."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import syntax
from engine.core import Gap
from engine.prompts.completions import filled


def read(program: str, gap: Gap, text: str, *, cut_off: bool = False) -> str | None:
    (found,) = filled(program, gap, text, cut_off=cut_off, most_lines=3)
    return None if found.program is None else found.program.text


EXPRESSION = "def f(x):\n    return g(x, 1)\n"
HOLE = Gap(start=EXPRESSION.index("x, 1"), end=EXPRESSION.index(", 1"))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("y", "y"),
        (" y", "y"),
        ("    y", "y"),
        ("y)", "y"),  # the parent closes the parenthesis
        ("y))", "y"),
        ("h(y))", "h(y)"),
        ("h(y", "h"),
        ("y + ", "y"),
        ("y + 'a", "y"),
        ("y # why", "y"),
        ("y\nz", "y"),
        ("y, z", "y, z"),
        ("y:", "y"),
        ("y if", "y"),
        ("y ** -2.5", "y ** -2.5"),
        ("[i for i in y", None),
        ("", ""),
        ("é + 'ü'", "é + 'ü'"),
        ("'\U0001f600'", "'\U0001f600'"),
        ("€", None),
        ("\x00", None),
        ("\ud800", None),
        ("y\x00", "y"),
        ("   ", None),
        ("\n\n", None),
        ("\t", None),
        (")", None),
        ("(" * 300, None),
        ("def g(): pass", None),
    ],
)
def test_the_longest_start_of_an_expression_that_parses(text: str, written: str | None) -> None:
    child = read(EXPRESSION, HOLE, text)
    if not written:
        assert child is None
    else:
        assert child == EXPRESSION.replace("x, 1", f"{written}, 1")


@pytest.mark.parametrize(
    ("parent", "own", "text", "changed"),
    [
        ("return-x", "-x", "y", "return y"),
        ("return-x", "-x", " y", "return y"),
        ("return-x", "-x", "(y)", "return(y)"),
        ("return[x]if x else 1", "[x]", "y", "return y if x else 1"),
        ("return x if(x)else-1", "-1", "2", "return x if(x)else 2"),
    ],
)
def test_a_word_is_kept_off_the_words_round_it(
    parent: str, own: str, text: str, changed: str
) -> None:
    head = "def f(x):\n    "
    start = len(head) + parent.index(own)
    child = read(f"{head}{parent}\n", Gap(start=start, end=start + len(own)), text)
    assert child == f"{head}{changed}\n"


STATEMENT = "def f(x):\n    y = x\n    return y\n"
LINES = Gap(start=STATEMENT.index("y = x"), end=STATEMENT.index("\n    return"), whole_lines=True)


@pytest.mark.parametrize(
    ("text", "cut_off", "written"),
    [
        ("y = 2", False, "y = 2"),
        (" y = 2", False, "y = 2"),
        ("y = 2\n", False, "y = 2"),
        ("y = 2   \n   ", False, "y = 2"),
        ("y = 2\n    y += 1", False, "y = 2\n    y += 1"),
        ("y = 2\n    y += 1", True, "y = 2"),  # the last line was cut off
        ("y = 2", True, "y = 2"),  # nothing else is left
        ("y = 2\n    y +=", False, "y = 2"),
        ("y = 2\n  z = 3", False, "y = 2"),
        ("y = (2\n    )", False, "y = (2\n    )"),
        ("y = (2\n", False, None),
        ("y = 'a", False, None),
        ("for i in x:\n        y = i", False, "for i in x:\n        y = i"),
        ("for i in x:\n        y = i", True, None),
        ("y = '½'", False, "y = '½'"),
        ("", False, None),
        ("   ", False, None),
        ("\n\n\n", False, None),
        ("\x00", False, None),
        ("```python", False, None),
        ("y = 1 2", False, None),
    ],
)
def test_the_most_lines_that_parse(text: str, cut_off: bool, written: str | None) -> None:
    child = read(STATEMENT, LINES, text, cut_off=cut_off)
    assert child == (None if written is None else STATEMENT.replace("y = x", written))


def test_an_assignment_is_written_around_the_answer() -> None:
    start = STATEMENT.index("return")
    gap = Gap(start=start, end=start, before="y = np.", after="\n    ")
    child = read(STATEMENT, gap, " exp(y))")
    assert child == STATEMENT.replace("return", "y = np.exp(y)\n    return")


@pytest.mark.parametrize("unit", ["(", "-", "1+", "x ", "'", "\n", "[](){}", "x.", "not ", "\\"])
def test_of_a_huge_answer_only_the_start_is_tried(unit: str) -> None:
    """Each token of an expression may cost a parse, and each of a few lines."""
    child = read(EXPRESSION, HOLE, unit * 20_000, cut_off=True)
    assert child is None or len(child) < len(EXPRESSION) + 400
    lines = read(EXPRESSION, replace(HOLE, whole_lines=True), unit * 20_000, cut_off=True)
    assert lines is None or syntax.parse(lines) is not None


@given(text=st.text(max_size=60), whole_lines=st.booleans(), cut_off=st.booleans())
def test_an_answer_gives_a_program_that_parses_or_none(
    text: str, whole_lines: bool, cut_off: bool
) -> None:
    gap = replace(LINES, whole_lines=whole_lines)
    child = read(STATEMENT, gap, text, cut_off=cut_off)
    if child is not None:
        assert syntax.parse(child) is not None
        written = child[gap.start : len(child) - (len(STATEMENT) - gap.end)]
        assert written.strip()
        assert text.lstrip(" ").startswith(written)
        assert child == STATEMENT[: gap.start] + written + STATEMENT[gap.end :]
