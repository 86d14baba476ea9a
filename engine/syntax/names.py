"""Names that a program would fail on, and the modules that its names mean.

Covers: names that no statement binds, attributes that numpy, scipy and math do not have. Does not
cover whether a program is right or safe: only running it tells.
"""

import ast
import builtins
import symtable
from collections.abc import Iterable, Iterator

from engine.syntax.library import has, is_module
from engine.syntax.tree import Kinds, dotted, kinds_of, nodes

# Modules whose attributes are looked up for real; any other module's are taken on trust.
_KNOWN_MODULES = ("math", "numpy", "scipy")
# What a module or a class body can read without binding it, beside the built-in names.
_ALWAYS_BOUND = frozenset(
    {
        *dir(builtins),
        *("__annotations__", "__builtins__", "__file__", "__module__", "__qualname__"),
    }
)
# Functions, classes, exceptions, parameters, and what `match` and type parameters capture: the
# field of each kind of node that holds the name.
_BINDS_BY = {
    kind: field
    for kind in vars(ast).values()
    for field in ("name", "arg", "rest")
    if field in getattr(kind, "_fields", ()) and kind not in (ast.alias, ast.keyword)
}
# With these a program can bind names that no reading of its text finds.
_BINDERS = frozenset({"exec", "globals", "locals", "vars"})
# A handler of one of these goes on where a name or an attribute is missing.
_CATCHERS = frozenset({"AttributeError", "BaseException", "Exception", "NameError"})


def undefined_names(program: str, tree: ast.Module, kinds: Kinds) -> tuple[str, ...]:
    """Return the names that the program would fail on, in alphabetical order.

    A name counts if no scope that the program could find it in binds it anywhere. An attribute
    counts if it is read from numpy, scipy, math or one of their submodules and is not there. The
    order of statements does not matter, so a name that is used before it is bound does not count.
    Nothing counts in a program that imports ``*`` or binds names by ``exec`` and the like, nor
    under a ``try`` that catches the error.

    Args:
        program: its text.
        tree: its syntax tree.
        kinds: all nodes of the tree.
    """
    names = {node.id for node in kinds[ast.Name]}
    if names & _BINDERS or any(
        alias.name == "*" for node in kinds[ast.ImportFrom] for alias in node.names
    ):
        return ()
    modules = {} if "hasattr" in names else _modules_of(kinds)
    missing = _unbound(symtable.symtable(program, "<program>", "exec"))
    if not missing and not _missing_attributes(kinds[ast.Attribute], modules):
        return ()
    evaluated = kinds_of(_evaluated(tree))  # most programs are done by now
    missing -= names - {node.id for node in evaluated[ast.Name]}
    return tuple(sorted(missing | _missing_attributes(evaluated[ast.Attribute], modules)))


def known_modules(tree: ast.Module) -> dict[str, str]:
    """Return the numpy, scipy and math modules that a program imports: local name to path.

    A name is left out if any scope binds it to something else too, if its module can't be imported
    here, or if the program assigns to attributes of the module.
    """
    return _modules_of(kinds_of(nodes(tree)))


def _modules_of(kinds: Kinds) -> dict[str, str]:
    paths: dict[str, set[str | None]] = {}
    for name, path in _imports(kinds):
        paths.setdefault(name, set()).add(path)
    for other in _bound_otherwise(kinds):
        paths.pop(other, None)
    return {
        name: path
        for name, (path, *others) in paths.items()
        if path is not None and not others and is_module(path)
    }


def _imports(kinds: Kinds) -> Iterator[tuple[str, str | None]]:
    """Yield the names that imports bind, each with the path of the known module that it becomes."""
    for node in kinds[ast.Import]:
        for alias in node.names:
            whole = alias.name if alias.asname else alias.name.split(".")[0]
            yield alias.asname or whole, _known(whole)
    for node in kinds[ast.ImportFrom]:
        for alias in node.names:
            known = None if node.level else _known(f"{node.module}.{alias.name}")
            yield alias.asname or alias.name, known


def _bound_otherwise(kinds: Kinds) -> Iterator[str]:
    """Yield the names that are bound but by imports, and those whose attributes are bound."""
    for node in (*kinds[ast.Name], *kinds[ast.Attribute]):
        if not isinstance(node.ctx, ast.Load) and (path := dotted(node)):
            yield path[0]
    for kind, field in _BINDS_BY.items():
        yield from (getattr(node, field) for node in kinds[kind])


def _known(path: str) -> str | None:
    return path if path.split(".")[0] in _KNOWN_MODULES else None


def _unbound(module: symtable.SymbolTable) -> set[str]:
    """Return the names that some scope reads as global and no statement binds."""
    bound, read = set(_ALWAYS_BOUND), set()
    scopes = [module]
    while scopes:
        scope = scopes.pop()
        scopes += scope.get_children()
        for symbol in scope.get_symbols():
            if scope is module or symbol.is_global():
                if symbol.is_assigned() or symbol.is_imported():
                    bound.add(symbol.get_name())
                if symbol.is_referenced():
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
        or any(isinstance(each, ast.Name) and each.id in _CATCHERS for each in nodes(kind))
        for kind in caught
    )


def _missing_attributes(read: Iterable[ast.Attribute], modules: dict[str, str]) -> set[str]:
    found = set()
    for node in read:
        path = dotted(node)
        if path and path[0] in modules and not has(modules[path[0]], tuple(path[1:])):
            found.add(".".join(path))
    return found
