"""Each mutation by itself, on programs so small that all that it may do can be listed."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence

import numpy as np
import pytest

from engine.mutation import expressions, statements
from engine.mutation.change import one_of
from engine.mutation.python import MUTATIONS, Mutation


def outcomes(mutation: Mutation, program: str, *, seeds: int = 200) -> set[str]:
    """Return what the mutation makes of a program, over many seeds."""
    found = set()
    for seed in range(seeds):
        tree, rng = ast.parse(program), np.random.default_rng(seed)
        one_of(mutation(tree), rng)(rng)
        found.add(ast.unparse(tree))
    return found


def returns(*values: str, parameters: str = "a, b") -> set[str]:
    return {f"def f({parameters}):\n    return {value}" for value in values}


def blocks(*bodies: Sequence[str]) -> set[str]:
    return {"\n".join(["def f(x):", *(f"    {line}" for line in body)]) for body in bodies}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("program", ["", "import math", "class A:\n    pass", "def f():\n    pass"])
def test_a_mutation_without_a_place_changes_nothing(mutation: Mutation, program: str) -> None:
    tree = ast.parse(program)
    assert not mutation(tree)
    assert ast.unparse(tree) == program


def test_an_operator_becomes_another_one_of_its_kind() -> None:
    (program,) = returns("a + b")
    values = [f"a {sign} b" for sign in ("-", "*", "/", "//", "%", "**")]
    assert outcomes(expressions.operator, program) == returns(*values)
    assert outcomes(expressions.operator, "x = a and b") == {"x = a or b"}
    assert outcomes(expressions.operator, "x = -a") == {"x = +a"}
    assert outcomes(expressions.operator, "x |= a") == {
        f"x {op}= a" for op in ("&", "^", "<<", ">>")
    }
    assert not expressions.operator(ast.parse("x = not a @ b"))


def test_a_comparison_becomes_another_one() -> None:
    signs = ("<=", ">", ">=", "==", "!=")
    assert outcomes(expressions.comparison, "x = a < b") == {f"x = a {sign} b" for sign in signs}
    assert outcomes(expressions.comparison, "x = a is b") == {"x = a is not b"}
    assert outcomes(expressions.comparison, "x = a not in b") == {"x = a in b"}


def test_a_name_becomes_another_one_that_is_bound_before() -> None:
    program = "import math\nn = 3\n\ndef f(a, b):\n    c = a\n    d = 4\n    return math.sin(c)"
    read = program.replace
    assert outcomes(expressions.name, program) == {
        *(read("c = a", f"c = {name}") for name in ("b", "n")),
        *(read("sin(c)", f"sin({name})") for name in ("a", "b", "d", "n")),
    }


def test_a_function_of_a_module_becomes_another_one_with_as_many_arguments() -> None:
    found = outcomes(expressions.call, "import math\nx = math.hypot(1, 2)", seeds=500)
    assert {"import math\nx = math.atan2(1, 2)", "import math\nx = math.gcd(1, 2)"} <= found
    for program in found:
        assert not program.endswith((".hypot(1, 2)", ".sin(1, 2)", ".exp(1, 2)"))
    deep = outcomes(expressions.call, "import numpy as np\nx = np.linalg.norm(a)")
    assert "import numpy as np\nx = np.linalg.det(a)" in deep


def test_a_function_of_the_program_becomes_another_one_with_as_many_arguments() -> None:
    program = "\n".join(
        [
            "def f(a):\n    return g(a)\n",
            "def g(a):\n    return 1\n",
            "def h(a, b=1):\n    return 2\n",
            "def i(a, b):\n    return 3\n",
            "def j(*a, k):\n    return 4",
        ]
    )
    expected = {ast.unparse(ast.parse(program.replace("g(a)\n\n", f"{to}(a)\n\n"))) for to in "fh"}
    assert outcomes(expressions.call, program) == expected


@pytest.mark.parametrize(
    "call",
    [
        *("np.random.rand(3)", "np.sum(a, axis=0)", "np.sum(*a)", "a.mean(0)", "len(a)"),
        *("np.ndarray.sum(a)", "other.sin(a)", "np.sum()"),
    ],
)
def test_a_call_that_can_not_be_judged_is_left_alone(call: str) -> None:
    tree = ast.parse(f"import numpy as np\nimport other\n\ndef f(a):\n    return {call}")
    assert not expressions.call(tree)


def test_no_call_is_made_of_what_returns_whatever_memory_holds() -> None:
    found = outcomes(expressions.call, "import numpy as np\nx = np.zeros(3)", seeds=3000)
    assert "import numpy as np\nx = np.ones(3)" in found
    assert not {program for program in found if "np.empty" in program}


def test_an_expression_becomes_another_one_of_its_function() -> None:
    program = "def f(a, b):\n    return a + b * 2\n\ndef g(q):\n    return q"
    found = outcomes(expressions.expression, program, seeds=500)  # q has nothing to become
    whole, product = "a + b * 2", "b * 2"
    exchanged = {
        *(other for other in ("a", "b", "2", product)),  # for all of it
        *(f"{other} + b * 2" for other in ("b", "2", f"{product}", f"({whole})")),
        *(f"a + {other}" for other in ("a", "b", "2", f"({whole})")),
        *(f"a + {other} * 2" for other in ("a", "2", f"({whole})", f"({product})")),
        *(f"a + b * {other}" for other in ("a", "b", f"({whole})", f"({product})")),
    }
    expected = {ast.unparse(ast.parse(program.replace(whole, each))) for each in exchanged}
    assert found == expected


def test_an_expression_is_not_copied_to_where_its_variables_are_not_bound() -> None:
    program = "def f(a):\n    b = a + 1\n    c = b + 2\n    return c"
    for child in outcomes(expressions.expression, program, seeds=500):
        first, second = child.split("\n")[1:3]
        assert not {"b", "c"} & set(first.removeprefix("    b = "))
        assert "c" not in second.removeprefix("    c = ")


def test_constants_stay_what_they_are_and_move_near_and_far() -> None:
    assert outcomes(expressions.constant, "x = True") == {"x = False"}
    integers = {ast.literal_eval(each[4:]) for each in outcomes(expressions.constant, "x = 20")}
    assert {type(each) for each in integers} == {int}
    assert {18, 19, 21, 22} < integers and 20 not in integers
    assert min(integers) < 10 and max(integers) > 40
    numbers = {ast.literal_eval(each[4:]) for each in outcomes(expressions.constant, "x = 0.5")}
    assert {type(each) for each in numbers} == {float}
    assert min(numbers) < 0.25 and max(numbers) > 1.0
    assert min(abs(each - 0.5) for each in numbers) < 1e-3
    assert 0.5 not in numbers


@pytest.mark.parametrize("value", ["0", "0.0", "1e308", "1e999", str(10**400), "-5", "1e-320"])
def test_constants_at_the_edge_stay_finite_numbers(value: str) -> None:
    for program in outcomes(expressions.constant, f"x = {value}"):
        assert math.isfinite(eval(program[4:]) // 10**300)


def test_no_other_constant_is_a_number() -> None:
    tree = ast.parse("def f(x):\n    '''A 1.'''\n    return ['a', None, ..., 1j, {1: x}, f'{1}']")
    assert not expressions.constant(tree)


def test_a_statement_is_removed() -> None:
    (program,) = blocks(["'''Text.'''", "a = 1", "b = 2", "return x"])
    expected = blocks(["'''Text.'''", "b = 2", "return x"], ["'''Text.'''", "a = 1", "return x"])
    assert outcomes(statements.removal, program) == {
        ast.unparse(ast.parse(each)) for each in expected
    }


def test_a_block_that_loses_its_only_statement_passes() -> None:
    (program,) = blocks(["for i in x:", "    g(i)", "return x"])
    assert outcomes(statements.removal, program) == blocks(
        ["for i in x:", "    pass", "return x"], ["return x"]
    )


def test_a_statement_is_repeated_behind_itself() -> None:
    (program,) = blocks(["a = 1", "b = 2", "return x"])
    assert outcomes(statements.repetition, program) == blocks(
        ["a = 1", "a = 1", "b = 2", "return x"],
        ["a = 1", "b = 2", "a = 1", "return x"],
        ["a = 1", "b = 2", "b = 2", "return x"],
    )


def test_neighbours_change_places() -> None:
    (program,) = blocks(["import math", "a = 1", "b = 2", "return x"])
    assert outcomes(statements.exchange, program) == blocks(
        ["import math", "b = 2", "a = 1", "return x"]
    )
    tree = ast.parse("a = 1\nb = 2")  # in no function
    assert not statements.exchange(tree)
