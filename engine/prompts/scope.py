"""Which variables can be read at a place in a program, and which of them count and which hold data.

Covers: a guess from the syntax tree, made for prompts: a wrong guess costs a child, not a run. Does
not cover types in general: what is not known to be a whole number is taken for an array.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """The variables of the innermost function around a place that are bound before it.

    Attributes:
        integers: those that were bound to whole numbers: defaults, ``len(...)``, ``range(...)``,
            and sums and products of such.
        arrays: all others.
        assignable: those that an assignment can give another value that lasts: no loop variables.
    """

    integers: tuple[str, ...]
    arrays: tuple[str, ...]
    assignable: tuple[str, ...]


def scope_at(tree: ast.Module, *, line: int) -> Scope:
    """Return the scope of a place on ``line`` (from 1) of the program that ``tree`` stands for.

    What is bound on the line itself does not count, so a loop's variable is in scope from its body
    on.
    """
    function = _innermost(tree, line)
    if function is None:
        return Scope(integers=(), arrays=(), assignable=())
    integers: dict[str, None] = {}
    others: dict[str, None] = {}
    loops: set[str] = set()
    for name, value, is_loop in _bindings(function, line):
        known = value is not None and is_integer(value, frozenset(integers))
        (integers if known else others).setdefault(name)
        if is_loop:
            loops.add(name)
    names = [*integers, *(name for name in others if name not in integers)]
    return Scope(
        integers=tuple(integers),
        arrays=tuple(name for name in others if name not in integers),
        assignable=tuple(name for name in names if name not in loops),
    )


def is_integer(value: ast.expr, integers: frozenset[str] | set[str]) -> bool:
    """Whether an expression gives a whole number, if ``integers`` are variables that do."""
    if isinstance(value, ast.Constant):
        return type(value.value) is int
    if isinstance(value, ast.Name):
        return value.id in integers
    if isinstance(value, ast.UnaryOp):
        return is_integer(value.operand, integers)
    if isinstance(value, ast.BinOp):
        whole = not isinstance(value.op, ast.Div)
        return whole and is_integer(value.left, integers) and is_integer(value.right, integers)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id in ("len", "int", "range")  # a loop over a range counts
    return False


def _innermost(tree: ast.Module, line: int) -> ast.FunctionDef | None:
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max(around, key=lambda function: function.lineno, default=None)


def _bindings(function: ast.FunctionDef, line: int) -> Iterator[tuple[str, ast.expr | None, bool]]:
    """Yield (name, what it is bound to, whether by a loop) for what is bound before ``line``."""
    arguments = function.args
    positional = arguments.posonlyargs + arguments.args
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    pairs = [*zip(positional, defaults, strict=True)]
    pairs += [*zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    for parameter, default in pairs:
        yield parameter.arg, default, False
    for statement in ast.walk(function):
        if isinstance(statement, ast.Assign) and (statement.end_lineno or 0) < line:
            for target in statement.targets:
                for name in _stored(target):
                    yield name, statement.value if isinstance(target, ast.Name) else None, False
        elif isinstance(statement, ast.For) and statement.lineno < line:
            for name in _stored(statement.target):
                yield name, statement.iter, True


def _stored(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
