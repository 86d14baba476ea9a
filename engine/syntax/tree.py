"""Syntax trees: from a program's text to its tree, and small questions about trees.

Covers: parsing, the lines as Python counts them, the nodes level by level. Does not cover what is
concluded from a tree: the other modules of this folder.
"""

import ast
import io
import re
import threading
import warnings
from collections.abc import Iterable
from typing import Any

from engine.syntax._native import walk

MAX_DEPTH = 200
"""The deepest syntax tree that `parse` returns: what walks a tree recurses once a level or more."""

_NAME = "<program>"
# CPython 3.11 counts the depth of a tree that it makes for all threads together: where two of them
# do, one gets a SystemError (github.com/python/cpython/issues/106905).
_ONE_TREE_AT_A_TIME = threading.RLock()

# Generated code is full of what Python warns of. Once and for good, not round each call:
# `warnings.catch_warnings` is not safe in a thread.
warnings.filterwarnings("ignore", module=re.escape(_NAME))


def parse(program: str) -> ast.Module | None:
    """Return the program's syntax tree; None if it isn't valid Python or nests over `MAX_DEPTH`."""
    found = parse_whole(program)
    return None if found is None else found[0]


def parse_whole(program: str) -> tuple[ast.Module, list[ast.AST], int] | None:
    """Return the program's syntax tree, its nodes (as `nodes`) and how many levels lie below its
    root; None as `parse`.
    """
    try:
        with _ONE_TREE_AT_A_TIME:
            tree = ast.parse(program, filename=_NAME)
            found = walk(tree, most_levels=MAX_DEPTH)
            if found is None:
                return None
            compile(tree, _NAME, "exec")  # catches `return` outside a function and the like
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree, *found


def copy_of(program: str) -> ast.Module:
    """Return a fresh tree, of whatever depth, which may be changed.

    Raises:
        SyntaxError: it isn't valid Python.
        ValueError: likewise.
    """
    with _ONE_TREE_AT_A_TIME:
        return ast.parse(program, filename=_NAME)


def nodes(tree: ast.AST) -> list[ast.AST]:
    """Return the nodes of a tree in the order of `ast.walk`, at a tenth of its price."""
    found = walk(tree, most_levels=2**31 - 1)
    assert found is not None  # no tree has as many levels
    return found[0]


class Kinds(dict[type[ast.AST], list[Any]]):
    """Nodes by what they are; none of a kind that does not occur."""

    def __missing__(self, kind: type[ast.AST]) -> list[Any]:
        return []


def kinds_of(nodes: Iterable[ast.AST]) -> Kinds:
    """Return ``nodes`` by kind, each kind's in their order."""
    found = Kinds()
    for node in nodes:
        found.setdefault(type(node), []).append(node)
    return found


def source_lines(program: str) -> list[str]:
    """Return the program's lines as Python counts them, with their ends.

    `str.splitlines` also splits at form feeds and at some characters that may stand in a string.
    """
    return list(io.StringIO(program, newline=""))


def dotted(node: ast.expr) -> list[str] | None:
    """Return the names of ``a.b.c``; None for what is not made of names and dots alone."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) else None
