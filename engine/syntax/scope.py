"""Which variables can be read at a place in a program: which are whole numbers, which hold data.

This is a guess from the syntax tree, made for prompts; a wrong guess costs a child, not a run. A
variable that is not known to be a whole number is taken for an array. A variable that is bound in
one branch is taken to be bound after it. Does not cover types in general.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine.syntax.tree import nodes

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """The variables of the innermost function around a place that are bound before it.

    Attributes:
        integers: those that were last bound to whole numbers: defaults, ``len(...)``, elements of
            ``range(...)``, and sums and products of such.
        arrays: all others.
        assignable: those to which an assignment gives a lasting value; loop variables are not.
    """

    integers: tuple[str, ...]
    arrays: tuple[str, ...]
    assignable: tuple[str, ...]


def scope_at(tree: ast.Module, *, line: int) -> Scope:
    """Return the scope of a place on ``line`` (from 1) of the program that ``tree`` stands for.

    A variable that is bound on the line itself does not count. So a loop's variable is in scope
    from the loop's body on, and a nested function's parameters from the line after its ``def`` on.
    """
    function = _innermost(tree, line)
    if function is None:
        return Scope(integers=(), arrays=(), assignable=())
    is_whole: dict[str, bool] = {}
    loops: set[str] = set()
    for name, value, is_loop in _bindings(function, line):
        integers = {known for known, whole in is_whole.items() if whole}
        is_whole[name] = value is not None and is_integer(value, integers)
        if is_loop:
            loops.add(name)
    return Scope(
        integers=tuple(name for name, whole in is_whole.items() if whole),
        arrays=tuple(name for name, whole in is_whole.items() if not whole),
        assignable=tuple(name for name in is_whole if name not in loops),
    )


def imported_at(tree: ast.Module, *, line: int) -> frozenset[str]:
    """Return the names that imports bind at a place on ``line``.

    Those are the imports of the module, and of the innermost function before the line.
    """
    function = _innermost(tree, line)
    local = own_nodes(function.body if function else ())
    before = (node for node in local if getattr(node, "lineno", line) < line)
    return imported_names([*own_nodes(tree.body), *before])


def imported_names(among: Iterable[ast.AST]) -> frozenset[str]:
    """Return the names that the imports ``among`` some nodes bind."""
    return frozenset(
        alias.asname or alias.name.split(".")[0]
        for node in among
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    )


def is_integer(value: ast.expr, integers: frozenset[str] | set[str]) -> bool:
    """Whether an expression gives a whole number, if ``integers`` are variables that do."""
    if isinstance(value, ast.Constant):
        return type(value.value) is int
    if isinstance(value, ast.Name):
        return value.id in integers
    if isinstance(value, ast.UnaryOp):
        return not isinstance(value.op, ast.Not) and is_integer(value.operand, integers)
    if isinstance(value, ast.BinOp):
        whole = not isinstance(value.op, ast.Div)
        return whole and is_integer(value.left, integers) and is_integer(value.right, integers)
    return _is_call(value, "len", "int")


def _is_call(value: ast.expr, *names: str) -> bool:
    called = value.func if isinstance(value, ast.Call) else None
    return isinstance(called, ast.Name) and called.id in names


def _innermost(tree: ast.Module, line: int) -> _Function | None:
    around = [
        node
        for node in nodes(tree)
        if isinstance(node, _Function) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    # A place on the line of a nested `def` may stand before it. What the function around binds can
    # be read on either side.
    inside = [function for function in around if function.lineno < line]
    return max(inside or around, key=lambda function: function.lineno, default=None)


def _bindings(function: _Function, line: int) -> Iterator[tuple[str, ast.expr | None, bool]]:
    """Yield (name, what it is bound to, whether by a loop) for what is bound before ``line``.

    In the order of the text; None stands for what is not known.
    """
    arguments = function.args
    positional = arguments.posonlyargs + arguments.args
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    pairs = [*zip(positional, defaults, strict=True)]
    pairs += [*zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    for parameter, default in pairs:
        yield parameter.arg, default, False
    for node in own_nodes(function.body):
        for target, value, end in _targets(node):
            if (end.end_lineno or line) < line:
                for name in _stored(target):
                    known = value if isinstance(target, ast.Name) else None
                    yield name, known, isinstance(node, ast.For | ast.AsyncFor)


def _targets(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None, ast.expr]]:
    """Yield (target, what it is bound to, the expression after which it is bound)."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield target, node.value, node.value
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        yield node.target, node.value, node.value
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        read = ast.Name(id=node.target.id, ctx=ast.Load())
        yield node.target, ast.BinOp(left=read, op=node.op, right=node.value), node.value
    elif isinstance(node, ast.For | ast.AsyncFor):
        counts = _is_call(node.iter, "range")
        yield node.target, ast.Constant(value=0) if counts else None, node.iter
    elif isinstance(node, ast.With | ast.AsyncWith):
        for item in node.items:
            if item.optional_vars is not None:
                yield item.optional_vars, None, item.optional_vars


def _stored(target: ast.expr) -> Iterator[str]:
    for node in nodes(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def own_nodes(roots: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the roots and what is under them, in the order of the text, but no inner scope."""
    for node in roots:
        yield node
        if not isinstance(node, _Function | ast.ClassDef | ast.Lambda):
            yield from own_nodes(ast.iter_child_nodes(node))
