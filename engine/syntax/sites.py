"""Places in a program where a language model can write something else.

Covers: finding them in the syntax tree, as character offsets: the slots that hold an expression
(``slots.py``), and statements. Does not cover choosing one or filling it:
``engine.prompts.infill``.
"""

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.syntax.slots import find_slots
from engine.syntax.tree import nodes, source_lines


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

    What is no slot is no site. Nor are f-strings, defaults of parameters, and the names of which an
    attribute is read. A number and its sign are one site. A ``return`` or a function is no site as
    a whole, only what is in it. Nothing is inserted in the middle of a line.
    """
    offsets = _Offsets(program)
    sites = {
        site
        for function in nodes(tree)
        if isinstance(function, ast.FunctionDef)
        for site in _statements_in(function, offsets)
    }
    sites.update(_expressions_in(tree, offsets))
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


def _statements_in(function: ast.FunctionDef, offsets: _Offsets) -> Iterator[Site]:
    for statement in _statements(function.body):
        start, end = offsets.span(statement)
        line = statement.lineno
        if offsets.starts_line(statement) and not getattr(statement, "decorator_list", []):
            kinds = [SiteKind.GAP] + [SiteKind.ASSIGNMENT] * (statement in function.body)
            for kind in kinds:
                yield Site(kind=kind, start=start, end=start, line=line, node=statement)
        if _is_replaceable(statement, offsets):
            yield Site(kind=SiteKind.STATEMENT, start=start, end=end, line=line, node=statement)


def _expressions_in(tree: ast.Module, offsets: _Offsets) -> Iterator[Site]:
    for slot in find_slots(tree):
        node, owner = slot.node, slot.owner
        number = node.operand if isinstance(node, ast.UnaryOp) else node
        kind = SiteKind.CONSTANT if isinstance(number, ast.Constant) else SiteKind.EXPRESSION
        if not isinstance(slot.function, ast.FunctionDef) or isinstance(owner, ast.arguments):
            continue
        if isinstance(owner, ast.UnaryOp) and isinstance(node, ast.Constant):
            continue
        if isinstance(owner, ast.Attribute) and isinstance(node, ast.Name | ast.Attribute):
            continue
        if not isinstance(node, ast.JoinedStr):
            start, end = offsets.span(node)
            yield Site(kind=kind, start=start, end=end, line=node.lineno, node=node)


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
