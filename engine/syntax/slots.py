"""Slots: the places of a syntax tree that hold an expression which another one may replace.

Covers: finding them, and which variables are bound where they stand. Does not cover what replaces
what: ``expressions.py``.

These are no slots: targets of assignments, the function of a call, an imported module and the path
of names behind it, annotations, decorators, patterns, the exceptions of a handler, f-strings,
docstrings, and the keys of a dictionary, which most often are the names that a problem's contract
asks for.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from engine.syntax.scope import own_nodes
from engine.syntax.tree import dotted, kinds_of, nodes

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


def imported_names(tree: ast.Module) -> frozenset[str]:
    """Return the names that imports bind, wherever they stand."""
    kinds = kinds_of(nodes(tree))
    return frozenset(
        alias.asname or alias.name.split(".")[0]
        for node in kinds[ast.Import] + kinds[ast.ImportFrom]
        for alias in node.names
    )


class _Names:
    """Names that are bound so far; the same set is handed out as long as none is added."""

    def __init__(self, names: frozenset[str] = frozenset()) -> None:
        self.bound = names

    def add(self, name: str) -> None:
        if name not in self.bound:
            self.bound |= {name}


class _Finder:
    def __init__(self, tree: ast.Module) -> None:
        self._imported = imported_names(tree)
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
