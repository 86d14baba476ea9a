"""Mutations of statements: one is removed, repeated, or changes places with its neighbour.

Only statements inside functions are touched, and no ``return``, import, definition or docstring: a
program needs those to return anything. Each mutation returns the changes that it may make of a
syntax tree, one for each place. Does not cover which of them is made, or what has to hold of the
mutated program: ``mutate.py``.
"""

import ast
import copy
from collections.abc import Iterator
from functools import partial

import numpy as np

from engine.mutation.change import Change, Within, everywhere
from engine.syntax.tree import nodes

_FIXED = (
    *(ast.Return, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef),
    *(ast.ClassDef, ast.Global, ast.Nonlocal, ast.Pass),
)
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)  # what stands behind them never runs


def removal(tree: ast.Module, within: Within = everywhere) -> list[Change]:
    """Remove a statement; ``pass`` stays where it was the only one of its block."""

    def remove(block: list[ast.stmt], index: int, _: np.random.Generator) -> None:
        block[index : index + 1] = [] if len(block) > 1 else [ast.Pass()]

    return [
        partial(remove, block, index)
        for block in _blocks(tree)
        for index, statement in enumerate(block)
        if _is_movable(statement) and within(statement)
    ]


def repetition(tree: ast.Module, within: Within = everywhere) -> list[Change]:
    """Insert a copy of a statement somewhere behind it in its block."""

    def repeat(block: list[ast.stmt], index: int, to: int, _: np.random.Generator) -> None:
        block.insert(to, copy.deepcopy(block[index]))

    return [
        partial(repeat, block, index, to)
        for block in _blocks(tree)
        for index, statement in enumerate(block)
        if _is_movable(statement) and within(statement)
        for to in range(index + 1, len(block) + 1)
        if not isinstance(block[to - 1], _LEAVES) and within(block[to - 1])
    ]


def exchange(tree: ast.Module, within: Within = everywhere) -> list[Change]:
    """Let two neighbours change places."""

    def swap(block: list[ast.stmt], index: int, _: np.random.Generator) -> None:
        block[index], block[index + 1] = block[index + 1], block[index]

    return [
        partial(swap, block, index)
        for block in _blocks(tree)
        for index in range(len(block) - 1)
        if all(_is_movable(each) and within(each) for each in block[index : index + 2])
    ]


def _blocks(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """Yield the blocks of statements inside functions."""
    seen: set[int] = set()
    for function in nodes(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in nodes(function):
            if id(node) in seen or isinstance(node, ast.ClassDef):
                continue
            seen.add(id(node))
            for field in ("body", "orelse", "finalbody"):
                block = getattr(node, field, None)
                if isinstance(block, list) and block:
                    yield block


def _is_movable(statement: ast.stmt) -> bool:
    docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return not docstring and not isinstance(statement, _FIXED)
