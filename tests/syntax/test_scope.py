"""What can be read at a place in a program, by hand-worked examples."""

from __future__ import annotations

import ast

import pytest

from engine.syntax.scope import Scope, imported_at, is_integer, scope_at


def at_mark(program: str) -> Scope:
    """Return the scope on the line that holds ``# here``."""
    return scope_at(ast.parse(program), line=line_of_mark(program))


def line_of_mark(program: str) -> int:
    return next(i for i, line in enumerate(program.splitlines(), start=1) if "# here" in line)


def names(scope: Scope) -> tuple[set[str], set[str]]:
    return set(scope.integers), set(scope.arrays)


def body(*lines: str) -> str:
    """Return a function of an array ``x`` and a whole number ``n`` with these lines."""
    return "def f(x, n=3):\n" + "".join(f"    {line}\n" for line in lines)


def test_a_parameter_is_what_its_default_is() -> None:
    program = (
        "def f(a, /, b, c=2, d=0.5, e=None, g=-1, h=True, *rest, i, j=4, k='s', **more):\n"
        "    pass  # here\n"
    )
    scope = at_mark(program)
    assert scope.integers == ("c", "g", "j")
    assert scope.arrays == ("a", "b", "d", "e", "h", "i", "k")
    assert set(scope.assignable) == {*scope.integers, *scope.arrays}


@pytest.mark.parametrize(
    ("binding", "is_whole"),
    [
        ("v = 1", True),
        ("v = -n", True),
        ("v = len(x)", True),
        ("v = int(x[0])", True),
        ("v = len(x) - n + 1", True),
        ("v = n // 2 * n", True),
        ("v: int = 3", True),
        ("v = w = 3", True),
        ("if (v := n + 1): pass", True),
        ("for v in range(n): pass", True),
        ("v = n / 2", False),
        ("v = 1.0", False),
        ("v = True", False),
        ("v = not n", False),
        ("v = n + x", False),
        ("v = x", False),
        ("v = range(n)", False),
        ("v = g(n)", False),
        ("v, w = 1, 2", False),
        ("[v, (*w, u)] = x", False),
        ("for v in x: pass", False),
        ("for v in range(n) + x: pass", False),
        ("for v, w in enumerate(x): pass", False),
        ("with g(x) as v: pass", False),
        ("with g(x) as (w, v): pass", False),
    ],
)
def test_what_a_variable_is_bound_to(binding: str, is_whole: bool) -> None:
    scope = at_mark(body(binding, "return v  # here"))
    assert ("v" in scope.integers) is is_whole
    assert ("v" in scope.arrays) is not is_whole


@pytest.mark.parametrize(
    "line",
    [
        "x[0] = n",  # binds nothing new
        "x.v = n",
        "v: int",
        "y = [v for v in x]",
        "y = lambda v: (w := v)",
    ],
)
def test_what_binds_nothing_that_can_be_read(line: str) -> None:
    scope = at_mark(body(line, "return x  # here"))
    assert not {"v", "w"} & {*scope.integers, *scope.arrays}


@pytest.mark.parametrize(
    ("lines", "is_whole"),
    [
        (("v = 1", "v = x"), False),
        (("v = x", "v = 1"), True),
        (("v = 1", "v = x", "v = 2"), True),
        (("v = 1", "v = v * x"), False),
        (("v = 1", "v += n"), True),
        (("v = 1", "v += 0.5"), False),
        (("v = 1", "v /= 2"), False),
        (("v = x", "v += 1"), False),
        (("v = 1", "for v in x: pass"), False),
        (("for v in range(n): pass", "v = x"), False),
    ],
)
def test_the_last_binding_counts(lines: tuple[str, ...], is_whole: bool) -> None:
    scope = at_mark(body(*lines, "return v  # here"))
    assert ("v" in scope.integers) is is_whole
    assert ("v" in scope.arrays) is not is_whole


def test_bindings_are_read_in_the_order_of_the_text() -> None:
    program = body("if n:", "    m = n", "k = m + 1", "return k  # here")
    assert {"m", "k"} <= set(at_mark(program).integers)


def test_a_parameter_can_be_rebound() -> None:
    scope = at_mark(body("n = n / 2", "x = 3", "return x  # here"))
    assert names(scope) == ({"x"}, {"n"})


def test_the_line_itself_and_what_follows_bind_nothing() -> None:
    assert names(at_mark(body("y = x  # here", "z = y"))) == ({"n"}, {"x"})


def test_a_binding_over_several_lines_is_over_at_its_last() -> None:
    program = body("y = g(", "    x,  # here", ")", "return y")
    assert "y" not in at_mark(program).arrays
    assert "y" in scope_at(ast.parse(program), line=5).arrays


def test_the_header_of_a_loop_cannot_read_its_variable() -> None:
    program = body("for i in g(", "    x,  # here", "):", "    pass")
    assert "i" not in at_mark(program).arrays
    assert "i" in scope_at(ast.parse(program), line=5).arrays


def test_a_loop_variable_is_in_scope_from_its_body_on() -> None:
    loop = ["for i in range(n):", "    y = i", "else:", "    z = i", "return z"]
    for marked, expected in enumerate([False, True, True, True, True]):
        lines = [line + "  # here" * (number == marked) for number, line in enumerate(loop)]
        assert ("i" in at_mark(body(*lines)).integers) is expected


def test_a_loop_variable_is_not_assignable() -> None:
    scope = at_mark(body("for i in range(n):", "    for x in x:", "        y = i  # here"))
    assert scope.assignable == ("n",)


def test_while_and_try_and_match_are_looked_into() -> None:
    program = body(
        "while n:",
        "    a = 1",
        "try:",
        "    b = x",
        "except ValueError as error:",
        "    c = 2",
        "finally:",
        "    d = x",
        "match x:",
        "    case 1:",
        "        e = 3",
        "return x  # here",
    )
    assert names(at_mark(program)) == ({"n", "a", "c", "e"}, {"x", "b", "d"})


NESTED = """\
def f(x):
    a = 1
    def g(y=2):
        b = y
        return b
    c = 3
    return g(c)
"""


@pytest.mark.parametrize(
    ("line", "integers", "arrays"),
    [
        (1, (), ("x",)),
        (3, ("a",), ("x",)),  # the line of a nested def belongs to the function around it
        (4, ("y",), ()),
        (5, ("y", "b"), ()),
        (6, ("a",), ("x",)),  # nothing of `g` is seen outside
        (7, ("a", "c"), ("x",)),
    ],
)
def test_nested_functions_keep_their_variables(
    line: int, integers: tuple[str, ...], arrays: tuple[str, ...]
) -> None:
    scope = scope_at(ast.parse(NESTED), line=line)
    assert (scope.integers, scope.arrays) == (integers, arrays)


def test_a_one_line_nested_function_reads_what_is_around_it() -> None:
    assert at_mark("def f(x):\n    def g(y): return y  # here\n").arrays == ("x",)


def test_methods_and_classes_keep_their_variables() -> None:
    program = (
        "def f(x):\n    class A:\n        b = 1\n        def g(self, c=2):\n            pass\n"
    )
    tree = ast.parse(program + "    return A\n")
    assert names(scope_at(tree, line=5)) == ({"c"}, {"self"})
    assert names(scope_at(tree, line=6)) == (set(), {"x"})


def test_async_functions_have_a_scope_too() -> None:
    program = "async def f(x):\n    async for i in x:\n        y = i\n    return y  # here\n"
    assert at_mark(program).arrays == ("x", "i", "y")


@pytest.mark.parametrize("line", [0, 1, 5, 10**6])
def test_outside_any_function_nothing_is_in_scope(line: int) -> None:
    tree = ast.parse("a = 1\ndef f(x):\n    return x\n\nb = a\n")
    assert scope_at(tree, line=line) == Scope(integers=(), arrays=(), assignable=())


def test_a_name_is_an_integer_or_an_array_and_never_both() -> None:
    scope = at_mark(body("a = 1", "a = x", "n = x", "n = 1", "b = n", "return a  # here"))
    assert len(set(scope.integers + scope.arrays)) == len(scope.integers + scope.arrays)
    assert set(scope.assignable) == {*scope.integers, *scope.arrays}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", True),
        ("n", True),
        ("-n", True),
        ("~n", True),
        ("n % 2 - len(x)", True),
        ("not n", False),
        ("m", False),
        ("3.0", False),
        ("True", False),
        ("'3'", False),
        ("n / 1", False),
        ("range(n)", False),
        ("np.len(x)", False),
        ("n if n else 1.5", False),
    ],
)
def test_is_integer(text: str, expected: bool) -> None:
    value = ast.parse(text, mode="eval").body
    assert is_integer(value, {"n"}) is expected


def test_imports_of_the_module_and_of_the_function_before_the_line() -> None:
    program = """\
import numpy as np
import scipy.signal
try:
    from scipy import ndimage as nd
except ImportError:
    nd = None

class A:
    import cmath

def g():
    import statistics

def f(x):
    import math
    y = x  # here
    import random
    return y
"""
    found = imported_at(ast.parse(program), line=line_of_mark(program))
    assert found == {"np", "scipy", "nd", "math"}
