"""Places in a program where a language model can write something else.

Covers: finding them in the syntax tree, as character offsets. Does not cover choosing one or
filling it: ``engine.prompts.infill``.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.syntax.tree import source_lines


class SiteKind(enum.StrEnum):
    """What stands at a site."""

    CONSTANT = "constant"
    EXPRESSION = "expression"
    STATEMENT = "statement"
    GAP = "gap"  # before a statement: something is inserted, nothing replaced
    ASSIGNMENT = "assignment"  # a gap in a function's own block, for a line `name = ...`


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """The characters ``start:end`` of a program, and what they are.

    Attributes:
        line: where the site starts, from 1.
        node: the expression or statement; a gap's is the statement that it stands before.
    """

    kind: SiteKind
    start: int
    end: int
    line: int
    node: ast.expr | ast.stmt = field(compare=False)


def find_sites(program: str, tree: ast.Module) -> tuple[Site, ...]:
    """Return the sites inside the program's functions, in the order they start.

    Targets of assignments, f-strings, decorators and annotations are no sites: what is written
    there rarely runs. A ``return`` or a function is no site as a whole, only what is in it. Nothing
    is inserted in the middle of a line.
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
        self._lines = source_lines(program)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._before(line, column))

    def starts_line(self, statement: ast.stmt) -> bool:
        """Whether a statement is the first on its line, and not the ``if`` in an ``elif``."""
        before = self._before(statement.lineno, statement.col_offset)
        return not before.strip() and not self.is_elif(statement)

    def is_elif(self, statement: ast.stmt) -> bool:
        """Whether a statement is an ``elif``: an ``if`` inside ``orelse``, to the tree."""
        line = self._lines[statement.lineno - 1].encode()
        return isinstance(statement, ast.If) and line[statement.col_offset :].startswith(b"elif")

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self.at(node.lineno, node.col_offset)
        return start, self.at(node.end_lineno, node.end_col_offset)

    def _before(self, line: int, column: int) -> str:
        return self._lines[line - 1].encode()[:column].decode()


def _sites_in(function: ast.FunctionDef, offsets: _Offsets) -> Iterator[Site]:
    for statement in _statements(function.body):
        start, end = offsets.span(statement)
        line = statement.lineno
        if offsets.starts_line(statement) and not getattr(statement, "decorator_list", []):
            yield Site(kind=SiteKind.GAP, start=start, end=start, line=line, node=statement)
            if statement in function.body:
                yield Site(
                    kind=SiteKind.ASSIGNMENT, start=start, end=start, line=line, node=statement
                )
        if _is_replaceable(statement, offsets):
            yield Site(kind=SiteKind.STATEMENT, start=start, end=end, line=line, node=statement)
        for kind, expression in _expressions(statement):
            start, end = offsets.span(expression)
            yield Site(kind=kind, start=start, end=end, line=expression.lineno, node=expression)


def _is_replaceable(statement: ast.stmt, offsets: _Offsets) -> bool:
    if isinstance(statement, ast.Return | ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    if isinstance(statement, ast.ClassDef):
        return not statement.decorator_list  # which the tree counts among the lines before
    return not offsets.is_elif(statement)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue  # a docstring
        yield statement
        for name in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, name, []))


def _expressions(statement: ast.stmt) -> Iterator[tuple[SiteKind, ast.expr]]:
    """Yield what a statement reads, itself and nested, but not the blocks under it."""
    for name, value in ast.iter_fields(statement):
        if name in ("body", "orelse", "finalbody", "annotation", "decorator_list", "returns"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.expr):
                yield from _reads(node)


def _reads(node: ast.expr) -> Iterator[tuple[SiteKind, ast.expr]]:
    if isinstance(node, ast.JoinedStr | ast.Starred | ast.Slice):
        return
    if _is_constant(node):
        yield SiteKind.CONSTANT, node
        return
    if not isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
        yield SiteKind.EXPRESSION, node
    for child in _parts(node):
        if isinstance(node, ast.Attribute) or (isinstance(node, ast.Call) and child is node.func):
            yield from _base(child)
        else:
            yield from _reads(child)


def _base(node: ast.expr) -> Iterator[tuple[SiteKind, ast.expr]]:
    """Yield the sites in what a call names or an attribute is read of; a bare name has to stay."""
    if isinstance(node, ast.Attribute):
        yield from _base(node.value)
    elif not isinstance(node, ast.Name):
        yield from _reads(node)


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


def _is_constant(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant)
