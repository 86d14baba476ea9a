"""A mutated program is one, is another one, and follows from its seed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import syntax
from engine.mutation import mutated
from engine.problem import load_problem, shipped
from engine.syntax.reading import program_key

HOSTILE = {
    "class": "class A:\n    size = 3\n\n    def f(self, x):\n        y = x * 2\n        return y\n",
    "closure": "def f(x):\n    def g(y):\n        return y + x\n"
    "    return [g(z) for z in x if z > 0]\n",
    "match": "def f(x):\n    match x:\n        case 1 | 2:\n            return 3\n"
    "        case [a, *b]:\n            return a\n        case _:\n            return 0\n",
    "f-string": "def f(x):\n    s = f\"{x:{'>'}10} {'a' + 'b'}\"\n    return (len(s), 1)\n",
    "walrus": "def f(x):\n    if (n := len(x)) > 3:\n        return n\n    return not n\n",
    "global": "n = 0\n\ndef f(x):\n    global n\n    n += 1\n    return n\n",
    "try": "def f(x):\n    try:\n        y = 1 / x\n    except (ValueError, TypeError) as e:\n"
    "        y = str(e)\n    finally:\n        x = 2\n    return y\n",
    "async": "async def f(x):\n    async with x as y:\n        z = [i async for i in y]\n"
    "    return z\n",
    "lambda": "run = lambda x, y=2: x if x is not y else -x\n",
    "huge": f"def f(x):\n    return x % 0x{'f' * 5000}\n",
    "infinite": "def f(x):\n    return min(x, 1e999, -1e999, 0, 0.0, True)\n",
    "names": "from math import *\n\ndef f(x, *y, z=1, **k):\n    return sin(x) + z\n",
    "unbound": "def f(x):\n    return q + x\n",
    "text": 'def f(x):\n    """Say \\ud800 \\"""."""\n    return {"a": x, **{}, "b": -1}\n',
    "decorated": "import functools\n\n@functools.lru_cache(maxsize=3)\ndef f(x: int = 3) -> int:\n"
    "    y: float = 2.0\n    del x\n    return y\n",
}


def children(program: str, *, seeds: range, temperature: float) -> Iterator[tuple[str, ast.Module]]:
    for seed in seeds:
        child = mutated(program, seed=seed, temperature=temperature)
        tree = syntax.parse(child)
        assert tree is not None
        yield child, tree


def imports(tree: ast.Module) -> list[str]:
    return [
        ast.dump(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)
    ]


def signatures(tree: ast.Module) -> list[tuple[str, list[str]]]:
    """Return the functions of a program with the names of their parameters."""
    return [
        (node.name, [each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)])
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


@pytest.mark.parametrize(
    "problem", [name for name, folder in shipped().items() if (folder / "initial.py").exists()]
)
def test_a_mutated_program_is_another_one_with_the_same_imports_and_functions(
    problem: str,
) -> None:
    program = load_problem(Path(shipped()[problem])).initial_program
    before = ast.parse(program)
    for child, tree in children(program, seeds=range(12), temperature=1.5):
        assert program_key(tree) != program_key(before)
        assert imports(tree) == imports(before)
        assert signatures(tree) == signatures(before)
        assert not syntax.read(child).undefined


def test_the_seed_decides_everything() -> None:
    program = load_problem(Path(shipped()["signal"])).initial_program
    first, again = (
        [child for child, _ in children(program, seeds=range(40), temperature=1.0)]
        for _ in range(2)
    )
    assert first == again
    assert len(set(first)) > 30


def test_a_lineage_of_hundreds_remains_a_program_that_can_be_changed() -> None:
    program = load_problem(Path(shipped()["circle_packing"])).initial_program
    before = ast.parse(program)
    for seed in range(100):
        child = mutated(program, seed=seed, temperature=0.5)
        tree = syntax.parse(child)
        assert tree is not None and len(child) < 100_000
        assert imports(tree) == imports(before)
        program = child


@pytest.mark.parametrize("kind", sorted(HOSTILE))
def test_odd_programs_remain_programs(kind: str) -> None:
    program = HOSTILE[kind]
    before = syntax.parse(program)
    assert before is not None
    unbound = set(syntax.read(program).undefined)
    changed = 0
    for child, tree in children(program, seeds=range(30), temperature=1.0):
        changed += program_key(tree) != program_key(before)
        assert signatures(tree) == signatures(before)
        assert unbound.issuperset(syntax.read(child).undefined)
    # Two mutations may undo each other. What Python can't write down stays as it is.
    assert changed >= 25 or kind == "huge"


@pytest.mark.parametrize(
    "program",
    [
        "",
        "\n",
        "# nothing\n",
        '"""Nothing."""\n',
        "import math\n",
        "def f(:\n",
        "x = \0",
        "((((" * 99,
    ],
)
def test_what_has_nothing_to_change_is_returned_as_it_is(program: str) -> None:
    assert mutated(program, seed=1, temperature=3.0) == program


def test_the_temperature_is_the_mean_number_of_further_mutations() -> None:
    lines = [f"    x{number} = {number + 0.5}" for number in range(60)]
    program = "\n".join(["def f():", *lines, "    return x0", ""])

    before = set(program.split("\n"))

    def mean_changes(temperature: float) -> float:
        found = children(program, seeds=range(40), temperature=temperature)
        return sum(len(set(child.split("\n")) ^ before) for child, _ in found) / 40

    # A changed line counts twice, a removed one once, a repeated one and an exchange do not count.
    assert 1.0 < mean_changes(0.01) < 2.1
    assert 5.5 * mean_changes(0.01) < mean_changes(6.0) < 8.5 * mean_changes(0.01)


def test_a_program_in_which_little_can_change_grows() -> None:
    program = "def approximate(x):\n    return x\n"
    children = {mutated(program, seed=seed, temperature=0.0) for seed in range(8)}
    assert program not in children
    assert len(children) > 4
    for child in children:
        assert child.startswith("def approximate(x):\n    return x ")
