"""Texts and arguments in a Python script, read off its syntax tree; nothing is executed."""

import ast
import inspect
from collections.abc import Iterator


def texts(tree: ast.Module) -> dict[str, str]:
    """Return the texts that a script has names for: at its top level, or as keyword arguments.

    Understood are constants, sums and f-strings of them, names defined before, ``strip`` and
    ``dedent``.
    """
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        for name, value in _named(node):
            text = _text(value, found)
            if text is not None:
                found.setdefault(name, text)
    return found


def _named(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case ast.keyword(arg=str() as name, value=value):
            yield name, value
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, value


def _text(node: ast.expr, known: dict[str, str]) -> str | None:
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.Name(id=name):
            return known.get(name)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = [_text(left, known), _text(right, known)]
        case ast.JoinedStr(values=values):
            parts = [_text(each, known) for each in values]
        case ast.FormattedValue(value=value):
            return _text(value, known)
        case ast.Call(func=ast.Attribute(value=value, attr="strip"), args=[]):
            stripped = _text(value, known)
            return None if stripped is None else stripped.strip()
        case ast.Call(func=ast.Attribute(attr="dedent") | ast.Name(id="dedent"), args=[value]):
            dedented = _text(value, known)
            return None if dedented is None else inspect.cleandoc(dedented)
        case _:
            return None
    return None if any(part is None for part in parts) else "".join(filter(None, parts))
