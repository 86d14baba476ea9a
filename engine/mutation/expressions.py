"""Mutations of expressions: numbers, operators, comparisons, names, calls, subexpressions.

Each returns the changes that it may make of a syntax tree, one for each place. Does not cover which
of them is made, or what has to hold of the mutated program: ``mutate.py``.
"""

import ast
import copy
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from engine.mutation.change import Change, Within, everywhere, one_of
from engine.mutation.number import moved
from engine.syntax import dotted
from engine.syntax.library import Function, functions_of
from engine.syntax.names import known_modules
from engine.syntax.places import Slot, find_slots
from engine.syntax.tree import nodes

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
_BOOLEAN = (ast.And, ast.Or)
_SIGNS = (ast.USub, ast.UAdd)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_IDENTITY = (ast.Is, ast.IsNot)
_MEMBERSHIP = (ast.In, ast.NotIn)
# What they return is not determined by their arguments: a program that has it by chance could not
# be scored twice alike.
_UNDETERMINED = frozenset({"empty", "empty_like"})
_Kind = tuple[type[ast.AST], ...]


def constant(tree: ast.Module, within: Within = everywhere) -> list[Change]:
    """Scale or shift a number; turn a truth value round: see `moved`."""

    def move(slot: Slot, value: float, rng: np.random.Generator) -> None:
        slot.put(_literal(moved(value, rng)))

    return [
        partial(move, slot, node.value)
        for slot in find_slots(tree)
        if isinstance(node := slot.node, ast.Constant)
        and isinstance(node.value, int | float)
        and within(node)
    ]


def operator(tree: ast.Module, within: Within = everywhere) -> list[Change]:
    """Replace an operator by another one of its kind: arithmetic, bitwise, boolean, a sign."""
    kinds = (_ARITHMETIC, _BITS, _BOOLEAN, _SIGNS)

    def replace(node: Any, rng: np.random.Generator) -> None:
        node.op = _other(node.op, kinds, rng)

    return [
        partial(replace, node)
        for node in _evaluated(tree)
        if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp | ast.UnaryOp)
        and any(isinstance(node.op, kind) for kind in kinds)
        and within(node)
    ]


def comparison(tree: ast.Module, within: Within = everywhere) -> list[Change]:
    """Replace a comparison by another one, ``is`` and ``in`` by their opposites."""

    def replace(node: ast.Compare, index: int, rng: np.random.Generator) -> None:
        node.ops[index] = _other(node.ops[index], (_ORDER, _IDENTITY, _MEMBERSHIP), rng)

    return [
        partial(replace, node, index)
        for node in _evaluated(tree)
        if isinstance(node, ast.Compare) and within(node)
        for index in range(len(node.ops))
    ]


def name(tree: ast.Module, within: Within = everywhere) -> list[Change]:
    """Read another variable that is bound there."""

    def rename(slot: Slot, now: str, rng: np.random.Generator) -> None:
        slot.put(ast.Name(id=one_of(sorted(slot.names - {now}), rng), ctx=ast.Load()))

    return [
        partial(rename, slot, node.id)
        for slot in find_slots(tree)
        if isinstance(node := slot.node, ast.Name)
        and node.id in slot.names
        and len(slot.names) > 1
        and within(node)
    ]


def call(tree: ast.Module, within: Within = everywhere) -> list[Change]:
    """Call another function of the same module, or of the program, that takes as many arguments.

    Only calls without keyword arguments are changed, and none of a module of random numbers.
    """
    modules, own = known_modules(tree), _own_functions(tree)

    def replace(node: ast.Call, others: Sequence[str], rng: np.random.Generator) -> None:
        if isinstance(node.func, ast.Attribute):
            node.func.attr = one_of(others, rng)
        else:
            node.func = ast.Name(id=one_of(others, rng), ctx=ast.Load())

    return [
        partial(replace, node, others)
        for node in _evaluated(tree)
        if isinstance(node, ast.Call)
        and not node.keywords
        and not any(isinstance(each, ast.Starred) for each in node.args)
        and within(node)
        and (others := _rivals(node, modules, own))
    ]


def expression(tree: ast.Module, within: Within = everywhere) -> list[Change]:
    """Replace an expression by a copy of another one of the same function.

    A single change: which slots can be replaced is seen when they are tried, in an order of chance.
    """
    slots = find_slots(tree)

    def copy_one(rng: np.random.Generator) -> None:
        for index in rng.permutation(len(slots)):
            slot = slots[index]
            if not within(slot.node):
                continue
            others = [
                each
                for each in slots
                if each is not slot
                and each.function is slot.function
                and _is_readable(each, at=slot)
            ]
            if others:
                slot.put(copy.deepcopy(one_of(others, rng).node))
                return

    return [copy_one] if any(within(slot.node) for slot in slots) else []


def growth(tree: ast.Module, within: Within = everywhere) -> list[Change]:
    """Compute with a variable and a number near 1 where the variable was read."""

    def grow(slot: Slot, rng: np.random.Generator) -> None:
        number = _literal(round(moved(1.0, rng), 6))
        sign = one_of(_ARITHMETIC[:4], rng)()
        slot.put(ast.BinOp(left=copy.deepcopy(slot.node), op=sign, right=number))

    return [
        partial(grow, slot)
        for slot in find_slots(tree)
        if isinstance(node := slot.node, ast.Name) and node.id in slot.names and within(node)
    ]


def _evaluated(tree: ast.Module) -> list[ast.AST]:
    """Return the slots' expressions and the statements, in the order of the text."""
    expressions = {id(slot.node) for slot in find_slots(tree)}
    return [node for node in nodes(tree) if id(node) in expressions or isinstance(node, ast.stmt)]


def _literal(value: float) -> ast.expr:
    """Return the expression that is written for a number; Python has no negative literals."""
    if value < 0:
        return ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=-value))
    return ast.Constant(value=value)


def _other(now: ast.AST, kinds: Sequence[_Kind], rng: np.random.Generator) -> Any:
    """Return another operator of the kind that ``now`` is of."""
    kind = next(kind for kind in kinds if isinstance(now, kind))
    return one_of([each for each in kind if not isinstance(now, each)], rng)()


def _own_functions(tree: ast.Module) -> dict[str, Function]:
    """Return the program's own functions by name, in alphabetical order."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.args.vararg:
            most = len(node.args.posonlyargs + node.args.args)
            if all(each is not None for each in node.args.kw_defaults):
                least = most - len(node.args.defaults)
                found[node.name] = Function(name=node.name, least=least, most=most)
    return dict(sorted(found.items()))


def _rivals(node: ast.Call, modules: dict[str, str], own: dict[str, Function]) -> list[str]:
    """Return the names of the functions that might be called in place of a call's own."""
    given, path = len(node.args), dotted(node.func)
    if path is None:
        return []
    rivals: Iterable[Function] = ()
    if len(path) == 1 and path[0] in own:
        rivals = own.values()
    elif len(path) > 1 and path[0] in modules:
        rivals = _functions(".".join([modules[path[0]], *path[1:-1]]))
    return [
        each.name for each in rivals if each.least <= given <= each.most and each.name != path[-1]
    ]


def _functions(module: str) -> list[Function]:
    """Return the functions of a module whose results their arguments determine.

    None of one of random numbers, or of what is no module.
    """
    if "random" in module:
        return []
    try:
        return [each for each in functions_of(module) if each.name not in _UNDETERMINED]
    except ImportError:  # a class, say: `np.ndarray.sum`
        return []


def _is_readable(expression: Slot, *, at: Slot) -> bool:
    """Whether the variables that an expression reads are bound at another slot too."""
    names = [node for node in nodes(expression.node) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    read = {node.id for node in names} & expression.names
    return read - bound <= at.names
