"""What can be said of a program without running it.

Covers: a key under which two programs are the same, and names that a program reads but nothing
defines. Does not cover whether a program is right or safe: only running it tells.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib
import symtable
import warnings
from collections.abc import Iterator

# Modules whose attributes are looked up for real; any other module's are taken on trust.
_KNOWN_MODULES = ("math", "numpy", "scipy")
_MODULE_NAMES = frozenset({*dir(builtins), "__file__", "__name__", "__doc__"})


def parse(program: str) -> ast.Module | None:
    """Return the program's syntax tree, or None if it is not valid Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # generated code is full of them
            tree = ast.parse(program)
            compile(tree, "<program>", "exec")  # catches `return` outside a function and the like
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree


def program_key(tree: ast.Module) -> str:
    """Return a digest that is equal for programs that differ in layout, comments or docstrings.

    The tree is normalised by dropping docstrings, other bare constants, type annotations and
    ``pass`` beside other statements; names and constants count.
    """
    normal = _Normalise().visit(ast.parse(ast.unparse(tree)))
    return hashlib.sha256(ast.dump(normal).encode()).hexdigest()


class _Normalise(ast.NodeTransformer):
    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block:
                kept = [each for each in block if not _says_nothing(each)]
                setattr(node, name, kept or [ast.Pass()])
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is None:
            return node
        return ast.Assign(targets=[node.target], value=node.value, lineno=node.lineno)


def _says_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Pass):
        return True
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def undefined_names(program: str, tree: ast.Module) -> tuple[str, ...]:
    """Return the names that the program would fail on, in alphabetical order.

    A name counts when no scope that the program could find it in binds it anywhere, and an
    attribute when it is read from numpy, scipy or math, or a submodule of theirs, and is not
    there. The order of statements is not looked at, so a name used before it is bound is not found.
    """
    table = symtable.symtable(program, "<program>", "exec")
    if any(
        isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)
        for node in ast.walk(tree)
    ):
        return ()
    bound = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
    bound |= {child.get_name() for child in table.get_children()}
    bound |= _declared_global(table)
    missing = {name for name in _global_reads(table) if name not in bound | _MODULE_NAMES}
    return tuple(sorted(missing | set(_missing_attributes(tree))))


def _global_reads(table: symtable.SymbolTable) -> Iterator[str]:
    for symbol in table.get_symbols():
        at_module = table.get_type() == "module"
        if symbol.is_referenced() and (symbol.is_global() or at_module):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _global_reads(child)


def _declared_global(table: symtable.SymbolTable) -> set[str]:
    names = {
        s.get_name() for s in table.get_symbols() if s.is_declared_global() and s.is_assigned()
    }
    return names.union(*(_declared_global(child) for child in table.get_children()))


def _missing_attributes(tree: ast.Module) -> Iterator[str]:
    modules = dict(_imported_modules(tree))
    rebound = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            path = _dotted(node)
            if path is None or path[0] not in modules or path[0] in rebound:
                continue
            if not _resolves(modules[path[0]], path[1:]):
                yield ".".join(path)


def _imported_modules(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield (local name, module path) of what is imported from the known modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in _KNOWN_MODULES:
                    whole = alias.name if alias.asname else alias.name.split(".")[0]
                    yield alias.asname or whole, whole
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            known = node.module.split(".")[0] in _KNOWN_MODULES
            for alias in node.names:
                path = f"{node.module}.{alias.name}"
                if known and _is_module(path):
                    yield alias.asname or alias.name, path


def _dotted(node: ast.expr) -> list[str] | None:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) else None


def _is_module(path: str) -> bool:
    try:
        importlib.import_module(path)
    except ImportError:
        return False
    return True


def _resolves(module: str, attributes: list[str]) -> bool:
    value: object = importlib.import_module(module)
    for index, name in enumerate(attributes):
        if not hasattr(value, name):
            return _is_module(".".join([module, *attributes[: index + 1]]))
        value = getattr(value, name)
    return True
