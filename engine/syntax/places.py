"""Places in a program that can be changed: slots of its syntax tree, and sites in its text.

A slot holds an expression which another one may replace. A site is where a language model can write
something else: the slots of functions, and statements, as character offsets.

These are no slots: targets of assignments, the function of a call, an imported module and the path
of names behind it, annotations, decorators, patterns, the exceptions of a handler, f-strings,
docstrings, and the keys of a dictionary, which most often are the names that a problem's contract
asks for.

Covers: finding them, and which variables are bound where a slot stands. Does not cover choosing one
or filling it: ``engine.mutation``, ``engine.prompts.infill``.
"""

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass

from engine.syntax.scope import imported_names, own_nodes
from engine.syntax.tree import dotted, nodes, source_lines

_LEFT_ALONE = frozenset(
    {"annotation", "ctx", "returns", "decorator_list", "type_params", "keys", "pattern", "type"}
)
# What is evaluated first is looked at first, whatever the order of the fields.
_FIRST = ("generators", "iter", "value")
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}  # of each kind of node, as they are met
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Slot:
    """A place that holds an expression.

    Attributes:
        owner: the node that has it.
        field: which of its fields.
        index: where in the field, if that is a list.
        names: the variables of the function around it, with its parameters, that are bound before
            it in the order of the text, and the module's variables; no imports, no functions.
        function: the outermost function around it; the module where there is none.
    """

    owner: ast.AST
    field: str
    index: int | None
    names: frozenset[str]
    function: ast.AST

    @property
    def node(self) -> ast.expr:
        """The expression."""
        value = getattr(self.owner, self.field)
        node: ast.expr = value if self.index is None else value[self.index]
        return node

    def put(self, node: ast.expr) -> None:
        """Replace the expression."""
        if self.index is None:
            setattr(self.owner, self.field, node)
        else:
            getattr(self.owner, self.field)[self.index] = node


def find_slots(tree: ast.Module) -> list[Slot]:
    """Return the slots of a program, roughly in the order in which they are evaluated."""
    finder = _Finder(tree)
    finder.look(tree, names=_Names(), function=tree)
    return finder.slots


class _Names:
    """Names that are bound so far; the same set is handed out as long as none is added."""

    def __init__(self, names: frozenset[str] = frozenset()) -> None:
        self.bound = names

    def add(self, name: str) -> None:
        if name not in self.bound:
            self.bound |= {name}


class _Finder:
    def __init__(self, tree: ast.Module) -> None:
        self._imported = imported_names(nodes(tree))
        assigned = (node for node in own_nodes(tree.body) if isinstance(node, ast.Name))
        names = {name.id for name in assigned if isinstance(name.ctx, ast.Store)}
        self._constants = frozenset(names) - self._imported
        self.slots: list[Slot] = []

    def look(self, node: ast.AST, *, names: _Names, function: ast.AST) -> None:
        """Find the slots under ``node``, and add what it binds to ``names``."""
        if isinstance(node, _Function) and isinstance(function, ast.Module):
            names, function = _Names(self._constants), node
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store) and node.id not in self._imported:
                names.add(node.id)
            return  # nothing stands under a name
        elif isinstance(node, ast.Constant):
            return
        for field, index, child in _children(node):
            if isinstance(child, ast.expr) and self._is_slot(node, field, child):
                slot = Slot(
                    owner=node, field=field, index=index, names=names.bound, function=function
                )
                self.slots.append(slot)
            self.look(child, names=names, function=function)

    def _is_slot(self, owner: ast.AST, field: str, node: ast.expr) -> bool:
        if isinstance(node, ast.Starred | ast.Slice) or self._is_imported(node):
            return False
        if isinstance(owner, ast.Call) and field == "func":
            return False
        if isinstance(owner, ast.Attribute):
            path = dotted(node)
            is_module = path is not None and path[0] in self._imported
            return isinstance(owner.ctx, ast.Load) and not is_module
        if isinstance(owner, ast.Subscript) and field == "value":
            return isinstance(owner.ctx, ast.Load)
        return isinstance(getattr(node, "ctx", None), ast.Load | None)

    def _is_imported(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self._imported


def _children(node: ast.AST) -> Iterator[tuple[str, int | None, ast.AST]]:
    """Yield (field, index in it, node) for what may hold slots under a node."""
    if isinstance(node, ast.JoinedStr) or _is_bare_constant(node):
        return
    kind = type(node)
    if kind not in _FIELDS:
        fields = [field for field in kind._fields if field not in _LEFT_ALONE]
        _FIELDS[kind] = tuple(sorted(fields, key=lambda field: field not in _FIRST))
    for name in _FIELDS[kind]:
        value = getattr(node, name, None)
        if isinstance(value, list):
            for index, each in enumerate(value):
                if isinstance(each, ast.AST):
                    yield name, index, each
        elif isinstance(value, ast.AST):
            yield name, None, value


def _is_bare_constant(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


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
    node: ast.expr | ast.stmt


def find_sites(program: str, tree: ast.Module) -> tuple[Site, ...]:
    """Return the sites inside the program's functions, in the order they start.

    What is no slot is no site. Nor are f-strings, defaults of parameters, and the names of which an
    attribute is read. A number and its sign are one site. A call's parentheses are in no site of
    its arguments. A ``return`` or a function is no site as a whole, only what is in it. Nothing is
    inserted in the middle of a line.
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
            if isinstance(owner, ast.Call) and _has_parentheses_of(owner, node):
                start, end = start + 1, end - 1
            yield Site(kind=kind, start=start, end=end, line=node.lineno, node=node)


def _has_parentheses_of(call: ast.Call, node: ast.expr) -> bool:
    """Whether the tree counts a call's parentheses to its argument: a generator that stands alone.

    They stay when it is replaced.
    """
    ends = (node.end_lineno, node.end_col_offset) == (call.end_lineno, call.end_col_offset)
    return ends and isinstance(node, ast.GeneratorExp)


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
