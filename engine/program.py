"""What can be said of a program without running it.

Covers: its lines, a key under which two programs are the same, and names that a program reads but
nothing defines. Does not cover whether a program is right or safe: only running it tells.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib
import io
import symtable
import threading
import warnings
from collections.abc import Iterator
from types import ModuleType

MAX_DEPTH = 200
"""The deepest syntax tree that `parse` returns: what walks a tree recurses once a level or more."""

# CPython 3.11 counts the depth of a tree that it makes for all threads together: where two of them
# do, one gets a SystemError (github.com/python/cpython/issues/106905).
_ONE_TREE_AT_A_TIME = threading.RLock()

# Modules whose attributes are looked up for real; any other module's are taken on trust.
_KNOWN_MODULES = ("math", "numpy", "scipy")
# What a module or a class body can read without binding it, beside the built-in names.
_ALWAYS_BOUND = frozenset(
    {
        *dir(builtins),
        *("__annotations__", "__builtins__", "__file__", "__module__", "__qualname__"),
    }
)
# With these a program can bind names that no reading of its text finds.
_BINDERS = frozenset({"exec", "globals", "locals", "vars"})
# A handler of one of these goes on where a name or an attribute is missing.
_CATCHERS = frozenset({"AttributeError", "BaseException", "Exception", "NameError"})


def parse(program: str) -> ast.Module | None:
    """Return the program's syntax tree; None if it isn't valid Python or nests over `MAX_DEPTH`."""
    try:
        with _ONE_TREE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # generated code is full of them
            tree = ast.parse(program)
            if _is_deep(tree):
                return None
            compile(tree, "<program>", "exec")  # catches `return` outside a function and the like
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree


def _is_deep(tree: ast.Module) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return bool(level)


def source_lines(program: str) -> list[str]:
    """Return the program's lines as Python counts them, with their ends.

    `str.splitlines` also splits at form feeds and at some characters that may stand in a string.
    """
    return list(io.StringIO(program, newline=""))


def program_key(tree: ast.Module) -> str:
    """Return a digest that is equal for programs that differ in layout, comments or docstrings.

    Docstrings, other bare constants, ``pass`` beside other statements and type annotations do not
    count, but for those in the body of a class, of which a dataclass makes its fields. Names and
    constants count.
    """
    digest = hashlib.sha256()
    todo: list[tuple[object, bool]] = [(tree, False)]
    while todo:
        value, in_class = todo.pop()
        parts: list[object] = []
        if isinstance(value, ast.AST):
            if isinstance(value, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                in_class = isinstance(value, ast.ClassDef)
            text, parts = _normalised(value, in_class)
        elif isinstance(value, list):
            text, parts = f"list {len(value)}", value
        else:
            # hex, because Python refuses to write an int of thousands of digits in base 10
            text = f"{type(value).__name__} {hex(value) if type(value) is int else repr(value)}"
        digest.update(f"{len(text)}:{text}".encode())
        todo += [(part, in_class) for part in reversed(parts)]
    return digest.hexdigest()


def _normalised(node: ast.AST, in_class: bool) -> tuple[str, list[object]]:
    """Return a node's kind, and its fields without what does not count."""
    if isinstance(node, ast.AnnAssign) and node.value is not None and not in_class:
        return "Assign", [[node.target], node.value, None]
    unsaid = {"annotation", "kind", "returns", "type_comment"}
    if isinstance(node, ast.AnnAssign) and in_class:
        unsaid.remove("annotation")
    parts: list[object] = []
    for name, value in ast.iter_fields(node):
        if name in unsaid:
            value = None
        elif name in ("body", "orelse", "finalbody") and isinstance(value, list):
            value = [each for each in value if not _says_nothing(each)]
        parts.append(value)
    return type(node).__name__, parts


def _says_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Pass):
        return True
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def undefined_names(program: str, tree: ast.Module) -> tuple[str, ...]:
    """Return the names that the program would fail on, in alphabetical order.

    A name counts when no scope that the program could find it in binds it anywhere, and an
    attribute when it is read from numpy, scipy or math, or a submodule of theirs, and is not
    there. The order of statements is not looked at, so a name used before it is bound is not found.
    What can't be known does not count: all of a program that imports ``*`` or binds names by
    ``exec`` and the like, and what stands under a ``try`` that catches it.
    """
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if names & _BINDERS or any(
        isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)
        for node in ast.walk(tree)
    ):
        return ()
    evaluated = list(_evaluated(tree))
    missing = _unbound(symtable.symtable(program, "<program>", "exec"))
    missing -= names - {node.id for node in evaluated if isinstance(node, ast.Name)}
    if "hasattr" not in names:
        missing |= _missing_attributes(evaluated, known_modules(tree))
    return tuple(sorted(missing))


def _unbound(module: symtable.SymbolTable) -> set[str]:
    """Return the names that some scope reads as global and no statement binds."""
    bound, read = set(_ALWAYS_BOUND), set()
    scopes = [module]
    while scopes:
        scope = scopes.pop()
        scopes += scope.get_children()
        for symbol in scope.get_symbols():
            is_global = scope is module or symbol.is_global()
            if is_global and (symbol.is_assigned() or symbol.is_imported()):
                bound.add(symbol.get_name())
            if is_global and symbol.is_referenced():
                read.add(symbol.get_name())
    return read - bound


def _evaluated(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes of the tree, without annotations that Python does not evaluate.

    What a ``try`` guards against missing names is left out too.
    """
    postponed = any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(alias.name == "annotations" for alias in node.names)
        for node in tree.body
    )
    todo: list[tuple[ast.AST, bool]] = [(tree, False)]
    while todo:
        node, in_function = todo.pop()
        yield node
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            in_function = not isinstance(node, ast.ClassDef)
        local = in_function and isinstance(node, ast.AnnAssign)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns") and (postponed or local):
                continue
            if name == "body" and _is_guarded(node):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    todo.append((child, in_function))


def _is_guarded(node: ast.AST) -> bool:
    if not isinstance(node, ast.Try | ast.TryStar):
        return False
    caught = [handler.type for handler in node.handlers]
    return any(
        kind is None
        or any(isinstance(each, ast.Name) and each.id in _CATCHERS for each in ast.walk(kind))
        for kind in caught
    )


def known_modules(tree: ast.Module) -> dict[str, str]:
    """Return the numpy, scipy and math modules that a program imports: local name to path.

    A name that is bound to something else too, in whatever scope, is left out, and so is one of a
    module that can't be imported here or that the program assigns attributes of.
    """
    paths: dict[str, set[str | None]] = {}
    for node in ast.walk(tree):
        for name, path in _bindings(node):
            paths.setdefault(name, set()).add(path)
    return {
        name: path
        for name, (path, *others) in paths.items()
        if path is not None and not others and _module(path) is not None
    }


def _bindings(node: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Yield the names that a node binds, each with the path of the known module that it becomes."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            whole = alias.name if alias.asname else alias.name.split(".")[0]
            yield alias.asname or whole, _known(whole)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            path = None if node.level else _known(f"{node.module}.{alias.name}")
            yield alias.asname or alias.name, path
    elif isinstance(node, ast.Name | ast.Attribute):
        dotted = _dotted(node)
        if dotted and not isinstance(node.ctx, ast.Load):
            yield dotted[0], None
    elif not isinstance(node, ast.alias):
        # Functions, classes, exceptions, parameters, and what `match` captures.
        for field in ("name", "arg", "rest"):
            name = getattr(node, field, None)
            if isinstance(name, str) and not isinstance(node, ast.keyword):
                yield name, None


def _known(path: str) -> str | None:
    return path if path.split(".")[0] in _KNOWN_MODULES else None


def _module(path: str) -> ModuleType | None:
    if any(part.startswith("_") for part in path.split(".")):
        return None  # `numpy.f2py.__main__` is a command that runs when it is imported
    try:
        return importlib.import_module(path)
    except ImportError:
        return None


def _missing_attributes(nodes: list[ast.AST], modules: dict[str, str]) -> set[str]:
    found = set()
    for node in nodes:
        path = _dotted(node) if isinstance(node, ast.Attribute) else None
        if path and path[0] in modules and not _resolves(modules[path[0]], path[1:]):
            found.add(".".join(path))
    return found


def _dotted(node: ast.expr) -> list[str] | None:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) else None


def _resolves(module: str, attributes: list[str]) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # looking at a deprecated name warns
        value: object = _module(module)
        for index, name in enumerate(attributes, start=1):
            if hasattr(value, name):
                value = getattr(value, name)
            else:
                value = _module(".".join([module, *attributes[:index]]))
                if value is None:
                    return False
    return True
