"""Mutations of programs with evolve blocks, of several files, and of other languages."""

from __future__ import annotations

import ast
import difflib

import pytest

from engine.core.bundle import bundle_of, files_of
from engine.mutation import mutated
from engine.syntax import read
from engine.syntax.blocks import keeps_fixed

BLOCKS = """import numpy as np

SIZE = 3  # fixed


def first(x, y=2):
    total = 0.5  # fixed
    # EVOLVE-BLOCK-START
    for i in range(10):
        total += x * i  # a comment
    if total > y:
        total = 3 * y
    # EVOLVE-BLOCK-END
    return total


# EVOLVE-BLOCK-START
def second(x):
    return first(x) * 7
# EVOLVE-BLOCK-END
"""
CPP = """#include <vector>
constexpr int fixed = 3;
// EVOLVE-BLOCK-START
constexpr int tile = 16;
void f(int n, double *a) {
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            a[i] += a[j] * 2.5f;
            a[j] -= 1;
        }
    }
}
// EVOLVE-BLOCK-END
int main() { return 1; }
"""
PROGRAMS = {
    "blocks": BLOCKS,
    "bundle": bundle_of({"a.py": BLOCKS, "b/c.cpp": CPP, "d.py": "z = 3\n"}),
    "open": bundle_of(
        {"a.py": "def f(x):\n    return x + 1\n", "b.py": "def g():\n    return 2\n"}
    ),
    "cpp": bundle_of({"main.cpp": CPP}),
    "unknown": bundle_of({"x.unknown": "tile 4\nsize 5\n"}),
    "unended": bundle_of({"a.js": "let a = 3", "b.js": "let b = 4"}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_child_is_another_program_with_the_same_fixed_text(name: str) -> None:
    program = PROGRAMS[name]
    before = read(program)
    assert before is not None
    found = set()
    for seed in range(60):
        child = mutated(program, seed=seed, temperature=0.5)
        after = read(child)
        assert after is not None
        assert keeps_fixed(child, parent=program)
        assert child == mutated(program, seed=seed, temperature=0.5)
        found.add(after.key)
    assert len(found - {before.key}) > 15


def test_a_lineage_of_many_remains_a_program() -> None:
    program = PROGRAMS["bundle"]
    for seed in range(80):
        program = mutated(program, seed=seed, temperature=0.0)
        assert keeps_fixed(program, parent=PROGRAMS["bundle"])
    files = files_of(program)
    assert "total = 0.5  # fixed" in files["a.py"]
    assert "fixed = 3" in files["b/c.cpp"]


def test_all_open_files_and_blocks_are_reached() -> None:
    children = [files_of(mutated(PROGRAMS["bundle"], seed=s, temperature=0.0)) for s in range(80)]
    assert any(child["b/c.cpp"] != CPP for child in children)
    assert any("* 7" not in child["a.py"] for child in children)
    assert any("range(10)" not in child["a.py"] for child in children)
    assert all(child["d.py"] == "z = 3\n" for child in children)


def changes(program: str, *, seeds: int = 300) -> set[tuple[str, ...]]:
    """Return what single mutations did to a program: lines removed and added."""
    found = set()
    for seed in range(seeds):
        child = mutated(program, seed=seed, temperature=0.0)
        lines = difflib.ndiff(program.splitlines(), child.splitlines())
        found.add(tuple(" ".join(line.split()) for line in lines if line[0] in "+-"))
    return found


def test_the_heads_of_two_loops_change_places() -> None:
    children = [mutated(PROGRAMS["cpp"], seed=seed, temperature=0.0) for seed in range(200)]
    assert any(each.find("int j = 0; j < n") < each.find("int i = 0; i < n") for each in children)


def test_numbers_are_scaled_and_shifted_and_keep_their_suffix() -> None:
    found = changes(PROGRAMS["cpp"])
    tiles = {each[-1] for each in found if each and "tile = 16" in each[0]}
    assert len(tiles) > 10
    assert any("f;" in each[-1] for each in found if each and "2.5f" in each[0])
    assert not any("fixed" in line or "main" in line for each in found for line in each)


def test_lines_are_removed_and_repeated() -> None:
    found = changes(PROGRAMS["cpp"], seeds=600)
    assert ("- a[j] -= 1;",) in found
    assert ("+ a[j] -= 1;",) in found


def test_a_block_without_whole_statements_is_left_alone() -> None:
    program = (
        "def f(x):\n    if x:\n        return 1\n"
        "    # EVOLVE-BLOCK-START\n    else:\n        x = 2\n    # EVOLVE-BLOCK-END\n    return x\n"
    )
    assert read(program) is not None
    assert mutated(program, seed=1, temperature=1.0) == program


METHODS = '''class A:
    # EVOLVE-BLOCK-START
    def f(self, x):
        """Say it.

        In three lines.
        """
        return x * 2

    def g(self, x):
        return x + 3, f"""{x}
    and more"""
    # EVOLVE-BLOCK-END
'''


def test_texts_of_several_lines_in_an_indented_block_stay_as_they_are() -> None:
    children = {mutated(METHODS, seed=seed, temperature=3.0) for seed in range(40)}
    assert len(children) > 20
    found = [node for each in children for node in ast.walk(ast.parse(each))]
    said = {ast.get_docstring(f, clean=False) for f in found if isinstance(f, ast.FunctionDef)}
    assert said <= {"Say it.\n\n        In three lines.\n        ", None} and len(said) == 2
    texts = {each.value for each in found if isinstance(each, ast.Constant)}
    assert {each for each in texts if "more" in str(each)} == {"\n    and more"}
