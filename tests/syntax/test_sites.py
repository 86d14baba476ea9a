"""Places in a program: exact to the character, and a change there can parse."""

from __future__ import annotations

import ast
import re

import pytest

from engine import syntax
from engine.syntax.places import Site, SiteKind, find_sites
from engine.syntax.reading import program_key

PLAIN = """\
import numpy as np

LIMIT = 3


def f(x, n=2):
    \"\"\"Doc.\"\"\"
    y = np.zeros(len(x))
    for i in range(n):
        y[i] = -0.5 * x[i : i + n]
    return {"y": y}
"""

PROGRAMS = {
    "plain": PLAIN,
    "non-ASCII": "def f(é):\n    s = 'ünï \U0001f600 ½'; ß = é + 'ö' + s\n    return [ß, 'é', s]\n",
    "tabs": "def f(x):\n\tif x:\n\t\ty = x\t+ 1\n\treturn\ty\n",
    "CRLF": "def f(x):\r\n    y = (x +\r\n         1)\r\n    return y\r\n",
    "CR": "def f(x):\r    y = x + 1\r    return y\r",
    "odd line ends": (
        "def f(x):\n    s = 'a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g' + x\n    return s + x\n"
    ),
    "form feed": "x = 1\n\x0c\ndef f(x):\n\x0c    y = x + 1\n    return y\n",
    "long string": 'def f(x):\n    s = """a\r\n  b\u2028\n½""" + x\n    return s + x\n',
    "no last line end": "def f(x): return x + 1",
    "elif": (
        "def f(x):\n    if x > 1:\n        y = 1\n    elif x > 2:\n        y = 2\n"
        "    elif x > 3: y = 3\n    else:\n        y = 4\n        y += 1\n    return y\n"
    ),
    "else if": "def f(x):\n    if x:\n        y = 1\n    else:\n        if x:\n            y = 2\n",
    "one line": "def f(x):\n    if x: y = 1\n    else: y = 2; z = 3\n    a = 1; b = 2\n",
    "one-line function": "def f(x): y = x; return y\n",
    "decorated": (
        "def deco(g): return g\n@deco\ndef f(x):\n    y = 1\n    @deco\n    def g(a=1):\n"
        "        return a + x\n    @deco\n    class A:\n        b = 2\n    return g\n"
    ),
    "nested": "def f(x):\n    def g(y):\n        def h(): return x + y\n        return h()\n",
    "class": "class A:\n    z = 1\n    def f(self):\n        self.a = self.b.c(1).d\n",
    "async": "async def f(x):\n    async def g():\n        await x\ndef h():\n    return 1\n",
    "f-string": "def f(x):\n    s = f'{x + 1:{x}} {x!r}' + 'a' f'{x}'\n    return f'a{x}'\n",
    "dict": "def f(x):\n    return {'a': x, 1: {'b': 2}, **x}\n",
    "calls": "def f(x):\n    return g(x, *x, k=1, **x)(2).h(y=3)[0](x for x in x)\n",
    "only generator": "def f(x):\n    return sum(i * 2 for i in x)\n",
    "slices": "def f(x):\n    x[1:2, ::3, ..., None] = x[:-1]\n    del x[0], x.a\n    x[i][j:k]\n",
    "targets": "def f(x):\n    a, (b, *c) = d.e[1] = x\n    a += 1\n    (c): int = 3\n",
    "unary": "def f(x):\n    return -1 + +x - ~2 - (not x) + - 3\n",
    "parentheses": "def f(x):\n    return ((x)) + ( ( 1 ) ) * (\n        2\n    )\n",
    "continued": "def f(x):\n    y = x + \\\n  1\n    assert y, \\\n        'no'\n",
    "loops": "def f(x):\n    for i, j in x: break\n    else:\n        y = 1\n    while x: x -= 1\n",
    "with": "def f(x):\n    with open(x) as a, b(1) as c:\n        return a\n",
    "try": (
        "def f(x):\n    try:\n        y = 1\n    except E as e:\n        y = 2\n    else:\n"
        "        y = 3\n    finally:\n        y = 4\n    return y\n"
    ),
    "match": "def f(x):\n    match x + 1:\n        case [1, *a] if a: y = 1\n",
    "lambda": "def f(x):\n    g = lambda a, b=1: a + b\n    return g(1)\n",
    "comprehensions": "def f(x):\n    return [i + 1 for i in x if i], {i: 1 for i in x}\n",
    "walrus": "def f(x):\n    if (n := len(x)) > 1:\n        return n\n",
    "generator": "def f(x):\n    y = yield x\n    yield\n    yield from x\n    return (yield)\n",
    "statements": "def f(x):\n    global a\n    import b\n    raise E(1) from x\n    'doc'\n",
    "comments": "def f(x):  # ünï\n    # ½\n    y = 1  # é\n    return y  # ö\n",
    "no function": "x = 1\nif x:\n    y = x + 2\n",
    "empty": "",
    "deep": "def f(x):\n    return " + "+".join(["x"] * 150) + "\n",
}


def sites_of(program: str) -> tuple[Site, ...]:
    tree = syntax.parse(program)
    assert tree is not None, program
    return find_sites(program, tree)


def texts(program: str, *kinds: SiteKind) -> list[str]:
    return [program[site.start : site.end] for site in sites_of(program) if site.kind in kinds]


def key(program: str) -> str | None:
    tree = syntax.parse(program)
    return None if tree is None else program_key(tree)


every_program = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())


# Where something is inserted and nothing replaced.
INSERTIONS = (SiteKind.GAP, SiteKind.ASSIGNMENT)


def source_of(program: str, node: ast.expr | ast.stmt) -> str:
    """Return a node's characters by the bytes of its lines, split where Python's tokenizer does."""
    assert node.end_lineno is not None and node.end_col_offset is not None
    lines = re.split(rb"(?<=\n)|(?<=\r)(?!\n)", program.encode())[node.lineno - 1 : node.end_lineno]
    end = sum(map(len, lines[:-1])) + node.end_col_offset
    return b"".join(lines)[node.col_offset : end].decode()


@every_program
def test_a_site_is_its_nodes_characters(program: str) -> None:
    for site in sites_of(program):
        source = source_of(program, site.node)
        if isinstance(site.node, ast.GeneratorExp) and program[site.start - 1] == "(":
            source = source[1:-1]  # the parentheses are the call's
        assert program.startswith(source, site.start)
        assert site.end - site.start == (0 if site.kind in INSERTIONS else len(source))
        assert site.line == site.node.lineno


@every_program
def test_something_can_be_written_at_every_site(program: str) -> None:
    for site in sites_of(program):
        if site.kind not in INSERTIONS:
            written = "pass" if site.kind is SiteKind.STATEMENT else "(z)"
            changed = program[: site.start] + written + program[site.end :]
            assert syntax.parse(changed) is not None, site


@every_program
def test_inserting_nothing_before_a_statement_changes_nothing(program: str) -> None:
    for site in sites_of(program):
        if site.kind in INSERTIONS:
            indentation = re.split(r"[\r\n]", program[: site.start])[-1]
            assert not indentation.strip()
            inserted = f"{program[: site.start]}pass\n{indentation}{program[site.start :]}"
            assert key(inserted) == key(program)


@every_program
def test_sites_come_in_order_and_once(program: str) -> None:
    sites = sites_of(program)
    assert len(set(sites)) == len(sites)
    places = [(site.start, site.end) for site in sites]
    assert places == sorted(places)
    assert all(0 <= start <= end <= len(program) for start, end in places)


@pytest.mark.parametrize("call", ["sum(i for i in x)", "sum (i for i in x)"])
def test_a_calls_parentheses_stay_where_its_generator_is_replaced(call: str) -> None:
    assert "i for i in x" in texts(f"def f(x):\n    return {call}\n", SiteKind.EXPRESSION)


@pytest.mark.parametrize("call", ["sum((i for i in x))", "sum((i for i in x), 1)", "f(x)"])
def test_other_parentheses_are_the_arguments_own(call: str) -> None:
    found = texts(f"def f(x):\n    return {call}\n", SiteKind.EXPRESSION)
    assert ("(i for i in x)" in found) is ("for" in call) and "i for i in x" not in found


def test_what_a_plain_program_offers() -> None:
    assert texts(PLAIN, SiteKind.CONSTANT) == ["-0.5"]
    assert texts(PLAIN, SiteKind.STATEMENT) == [
        "y = np.zeros(len(x))",
        "for i in range(n):\n        y[i] = -0.5 * x[i : i + n]",
        "y[i] = -0.5 * x[i : i + n]",
    ]
    assert set(texts(PLAIN, SiteKind.EXPRESSION)) == {
        *("np.zeros(len(x))", "len(x)", "x", "range(n)", "n", "i", "x[i : i + n]", "i + n"),
        *("-0.5 * x[i : i + n]", '{"y": y}', "y"),
    }
    assert len([site for site in sites_of(PLAIN) if site.kind is SiteKind.GAP]) == 4


@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("dict", "'a'"),
        ("dict", "'b'"),
        ("f-string", "x + 1"),
        ("decorated", "deco"),
        ("targets", "int"),
        ("targets", "a"),
        ("targets", "d"),
        ("class", "self"),
        ("class", "z = 1"),
        ("no function", "x + 2"),
    ],
)
def test_names_that_have_to_stay_are_no_sites(name: str, absent: str) -> None:
    assert absent not in texts(PROGRAMS[name], *SiteKind)


def test_the_branches_of_an_if_are_sites_and_an_elif_is_not() -> None:
    assert texts(PROGRAMS["elif"], SiteKind.STATEMENT)[1:] == [
        *("y = 1", "y = 2", "y = 3", "y = 4", "y += 1"),
    ]
    assert {"x > 1", "x > 2", "x > 3"} <= set(texts(PROGRAMS["elif"], SiteKind.EXPRESSION))
    assert "if x:\n            y = 2" in texts(PROGRAMS["else if"], SiteKind.STATEMENT)


def test_a_program_without_a_function_has_no_sites() -> None:
    assert sites_of(PROGRAMS["no function"]) == sites_of(PROGRAMS["empty"]) == ()
