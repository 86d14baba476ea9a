"""Places in a program where a language model can write something else.

Covers: finding them in the syntax tree, as character offsets. Does not cover choosing one or
filling it: ``infill.py``.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass


class SiteKind(enum.StrEnum):
    """What stands at a site."""

    CONSTANT = "constant"
    EXPRESSION = "expression"
    STATEMENT = "statement"
    GAP = "gap"  # before a statement: something is inserted, nothing replaced


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """The characters ``start:end`` of a program, and what they are."""

    kind: SiteKind
    start: int
    end: int


def find_sites(program: str, tree: ast.Module) -> tuple[Site, ...]:
    """Return the sites inside the program's functions, in the order they start.

    Targets of assignments, f-strings and what decorates or annotates are no sites: what is written
    there rarely runs. ``return`` at the end of a function is not replaced, only its value.
    """
    offsets = _Offsets(program)
    sites = {
        site
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for site in _sites_in(function, offsets)
    }
    return tuple(sorted(sites, key=lambda site: (site.start, site.end, site.kind)))


class _Offsets:
    """Turns the tree's (line, UTF-8 column) into offsets in characters."""

    def __init__(self, program: str) -> None:
        self._lines = program.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self.at(node.lineno, node.col_offset)
        return start, self.at(node.end_lineno, node.end_col_offset)


def _sites_in(function: ast.FunctionDef, offsets: _Offsets) -> Iterator[Site]:
    for statement in _statements(function.body):
        start, end = offsets.span(statement)
        yield Site(kind=SiteKind.GAP, start=start, end=start)
        if not isinstance(statement, ast.Return | ast.FunctionDef):
            yield Site(kind=SiteKind.STATEMENT, start=start, end=end)
        for expression in _expressions(statement):
            start, end = offsets.span(expression)
            kind = SiteKind.CONSTANT if _is_number(expression) else SiteKind.EXPRESSION
            yield Site(kind=kind, start=start, end=end)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue  # a docstring
        yield statement
        for name in ("body", "orelse", "finalbody"):
            block = getattr(statement, name, [])
            # `elif` is an `if` inside `orelse` that does not start with `if`: leave it alone.
            if not (name == "orelse" and isinstance(statement, ast.If)):
                yield from _statements(block)


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield what a statement reads, itself and nested, but not the blocks under it."""
    for name, value in ast.iter_fields(statement):
        if name in ("body", "orelse", "finalbody", "annotation", "decorator_list", "returns"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.expr):
                yield from _reads(node)


def _reads(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.JoinedStr | ast.Starred | ast.Slice):
        return
    if not isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
        yield node
    if _is_number(node):
        return
    for child in _parts(node):
        # The base of an attribute or an assigned element is a name that has to stay.
        if not isinstance(node, ast.Attribute) or not isinstance(child, ast.Name):
            yield from _reads(child)


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    for name, value in ast.iter_fields(node):
        if name == "keys" and isinstance(node, ast.Dict):
            continue  # the names that a program's contract asks for
        if name == "value" and isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.keyword):
                yield child.value
            elif isinstance(child, ast.Slice):
                yield from (part for part in (child.lower, child.upper, child.step) if part)
            elif isinstance(child, ast.expr):
                yield child


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant)


def assigned_before(program: str, tree: ast.Module, position: int) -> tuple[str, ...]:
    """Return the variables of the function around ``position`` that are assigned before it.

    Loop variables do not count: to assign them changes nothing that lasts.
    """
    offsets = _Offsets(program)
    around = [
        function
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        and offsets.span(function)[0] <= position <= offsets.span(function)[1]
    ]
    if not around:
        return ()
    innermost = max(around, key=lambda function: function.lineno)
    names = {
        target.id: None
        for node in ast.walk(innermost)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and offsets.span(target)[0] < position
    }
    return tuple(names)
