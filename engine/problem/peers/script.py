"""Texts and arguments in a Python script, read off its syntax tree; nothing is executed."""

import ast
import inspect
from collections.abc import Callable, Iterator

_Change = Callable[[str], str]


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
    """Return the text of an expression, without recursion: a sum nests as deep as it is long."""
    parts: list[str] = []
    waiting: list[ast.expr | tuple[_Change, int]] = [node]
    while waiting:
        match waiting.pop():
            case (change, begin):
                parts[begin:] = [change("".join(parts[begin:]))]
            case ast.Constant(value=str() as text):
                parts.append(text)
            case ast.Name(id=name) if name in known:
                parts.append(known[name])
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                waiting += [right, left]
            case ast.JoinedStr(values=values):
                waiting += reversed(values)
            case ast.FormattedValue(value=value):
                waiting.append(value)
            case ast.Call(func=ast.Attribute(value=value, attr="strip"), args=[]):
                waiting += [(str.strip, len(parts)), value]
            case ast.Call(func=ast.Attribute(attr="dedent") | ast.Name(id="dedent"), args=[value]):
                waiting += [(inspect.cleandoc, len(parts)), value]
            case _:
                return None
    return "".join(parts)
