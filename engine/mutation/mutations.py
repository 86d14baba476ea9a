"""The mutations: each returns the changes that it may make of a syntax tree, one for each place.

Of expressions: numbers, operators, comparisons, names, calls, subexpressions. Of statements: one is
removed, repeated, or changes places with its neighbour. Only statements inside functions are
touched, and no ``return``, import, definition or docstring: a program needs those to return
anything.

Does not cover which of them is made, or what has to hold of the mutated program: ``mutate.py``.
"""

import ast
import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

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
_MOST_INTEGER = 1 << 53  # a larger one is only shifted: as a float it would lose digits
_SHIFTS = 0.5  # share of the integers that are shifted and not scaled
_SMALLEST_STEP, _LARGEST_STEP = -3.0, 0.3  # decimal logarithms of relative steps
_FIXED = (
    *(ast.Return, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef),
    *(ast.ClassDef, ast.Global, ast.Nonlocal, ast.Pass),
)
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)  # what stands behind them never runs

_T = TypeVar("_T")
_Kind = tuple[type[ast.AST], ...]
Change = Callable[[np.random.Generator], None]
"""Changes one place of a tree; what is left open is decided by chance."""
Within = Callable[[ast.AST], bool]
"""Says of a node of a tree as it was parsed whether it may change."""


def everywhere(_: ast.AST) -> bool:
    """Let every node change."""
    return True


def constant(tree: ast.Module, within: Within = everywhere) -> list[Change]:
    """Scale or shift a number; turn a truth value round.

    An integer is shifted by a geometric number of ones, or scaled by a log-normal factor; another
    number x becomes x exp(s N(0, 1)) with a step s log-uniform from 0.001 to 2, so that search is
    fine and coarse at once; 0 becomes s N(0, 1).
    """

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
        operator = one_of(_ARITHMETIC[:4], rng)()
        slot.put(ast.BinOp(left=copy.deepcopy(slot.node), op=operator, right=number))

    return [
        partial(grow, slot)
        for slot in find_slots(tree)
        if isinstance(node := slot.node, ast.Name) and node.id in slot.names and within(node)
    ]


def removal(tree: ast.Module, within: Within = everywhere) -> list[Change]:
    """Remove a statement; ``pass`` stays where it was the only one of its block."""

    def remove(block: list[ast.stmt], index: int, _: np.random.Generator) -> None:
        block[index : index + 1] = [] if len(block) > 1 else [ast.Pass()]

    return [
        partial(remove, block, index)
        for block in _blocks(tree)
        for index, statement in enumerate(block)
        if _is_movable(statement) and within(statement)
    ]


def repetition(tree: ast.Module, within: Within = everywhere) -> list[Change]:
    """Insert a copy of a statement somewhere behind it in its block."""

    def repeat(block: list[ast.stmt], index: int, to: int, _: np.random.Generator) -> None:
        block.insert(to, copy.deepcopy(block[index]))

    return [
        partial(repeat, block, index, to)
        for block in _blocks(tree)
        for index, statement in enumerate(block)
        if _is_movable(statement) and within(statement)
        for to in range(index + 1, len(block) + 1)
        if not isinstance(block[to - 1], _LEAVES) and within(block[to - 1])
    ]


def exchange(tree: ast.Module, within: Within = everywhere) -> list[Change]:
    """Let two neighbours change places."""

    def swap(block: list[ast.stmt], index: int, _: np.random.Generator) -> None:
        block[index], block[index + 1] = block[index + 1], block[index]

    return [
        partial(swap, block, index)
        for block in _blocks(tree)
        for index in range(len(block) - 1)
        if all(_is_movable(each) and within(each) for each in block[index : index + 2])
    ]


def one_of(values: Sequence[_T], rng: np.random.Generator) -> _T:
    """Return one of ``values``, each as likely as the others."""
    return values[int(rng.integers(len(values)))]


def _evaluated(tree: ast.Module) -> list[ast.AST]:
    """Return the slots' expressions and the statements, in the order of the text."""
    expressions = {id(slot.node) for slot in find_slots(tree)}
    return [node for node in nodes(tree) if id(node) in expressions or isinstance(node, ast.stmt)]


def moved(value: float, rng: np.random.Generator) -> float:
    """Return another number, as `constant` has it."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return _integer_moved(value, rng)
    step = 10 ** rng.uniform(_SMALLEST_STEP, _LARGEST_STEP)
    result = value * math.exp(step * rng.standard_normal())
    if value == 0:
        result = step * rng.standard_normal()
    return float(result) if math.isfinite(result) else 0.0


def _integer_moved(value: int, rng: np.random.Generator) -> int:
    shift = int(rng.geometric(0.5)) * (1 if rng.random() < 0.5 else -1)
    if rng.random() < _SHIFTS or abs(value) > _MOST_INTEGER:
        return value + shift
    scaled = round(value * math.exp(rng.standard_normal()))
    return scaled if scaled != value else value + shift


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


def _blocks(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """Yield the blocks of statements inside functions."""
    seen: set[int] = set()
    for function in nodes(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in nodes(function):
            if id(node) in seen or isinstance(node, ast.ClassDef):
                continue
            seen.add(id(node))
            for field in ("body", "orelse", "finalbody"):
                block = getattr(node, field, None)
                if isinstance(block, list) and block:
                    yield block


def _is_movable(statement: ast.stmt) -> bool:
    docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return not docstring and not isinstance(statement, _FIXED)
