"""A digest under which two programs are the same.

Docstrings, other bare constants and ``pass`` beside other statements do not count. Annotations do
not count either, except in the body of a class, where a dataclass makes fields of them. Names and
constants count.
"""

from __future__ import annotations

import ast
import hashlib

# Whether a name is read or bound (ctx) follows from where it stands.
_UNSAID = frozenset({"annotation", "ctx", "kind", "returns", "type_comment"})
_BLOCKS = frozenset({"body", "orelse", "finalbody"})
_Layout = tuple[str, tuple[tuple[str, bool], ...]]
_LAYOUTS: dict[type[ast.AST], _Layout] = {}  # as they are met
_SCOPES = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def program_key(tree: ast.Module) -> str:
    """Return a digest that is equal for programs that differ in layout, comments or docstrings."""
    words: list[str] = []
    todo: list[tuple[object, bool]] = [(tree, False)]  # no recursion: a tree may be deep
    while todo:
        value, in_class = todo.pop()
        if isinstance(value, ast.AST):
            name, parts = _parts(value, in_class)
            if isinstance(value, _SCOPES):
                in_class = isinstance(value, ast.ClassDef)
            words.append(name)
            todo += [(part, in_class) for part in parts]
        elif isinstance(value, list):
            words.append(f"[{len(value)}:")
            todo += [(part, in_class) for part in reversed(value)]
        elif value is None:
            words.append("~")
        else:
            # hex, because Python refuses to write an int of thousands of digits in base 10
            text = hex(value) if type(value) is int else repr(value)
            words.append(f"<{type(value).__name__} {len(text)}:{text}")
    # A word that comes of the program has its length before it, so no two trees are one text.
    return hashlib.sha256("".join(words).encode(errors="surrogatepass")).hexdigest()


def _parts(node: ast.AST, in_class: bool) -> tuple[str, list[object]]:
    """Return how a node is written, and what is written behind that, the last first."""
    if isinstance(node, ast.AnnAssign):
        if in_class:
            return "(Field ", [node.value, node.annotation, node.target]
        if node.value is not None:
            node = ast.Assign(targets=[node.target], value=node.value)
    kind = type(node)
    if kind not in _LAYOUTS:
        _LAYOUTS[kind] = _layout(kind)
    name, fields = _LAYOUTS[kind]
    parts: list[object] = []
    for field, is_block in fields:
        value = getattr(node, field, None)
        if is_block and isinstance(value, list):
            value = [each for each in value if not _says_nothing(each)]
        parts.append(value)
    return name, parts


def _layout(kind: type[ast.AST]) -> _Layout:
    """Return how a kind of node is written, and its fields that count, the last first, each with
    whether it may be a block of statements.
    """
    names = (field for field in reversed(kind._fields) if field not in _UNSAID)
    fields = tuple((field, field in _BLOCKS) for field in names)
    return f"({kind.__name__} ", fields


def _says_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Pass):
        return True
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
