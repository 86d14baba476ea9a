"""What an evaluator does, as far as its source tells.

Looked at is what its entry functions can reach: the code at the top of its modules, the functions
whose names occur in what is reached, and the modules of the folder that these import.
"""

import ast
import importlib.util
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from engine.core import UserError
from engine.judge.contracts import SHIMS
from engine.problem.declaration import read
from engine.problem.peers.environment import variables
from engine.problem.peers.recognise import parsed
from engine.syntax import dotted

_EXECUTES = "executes text"
_STARTS = "starts a process"
_UNPICKLES = "reads pickles"
_PICKLES = ("pickle", "dill", "cloudpickle", "marshal", "joblib", "torch")
_CALLS = {
    **dict.fromkeys(("exec", "eval", "compile", "pandas.eval", "numexpr.evaluate"), _EXECUTES),
    **dict.fromkeys(("sympy.sympify", "sympy.parse_expr", "code.interact"), _EXECUTES),
    "sympy.parsing.sympy_parser.parse_expr": _EXECUTES,
    "runpy.run_module": _EXECUTES,
    **dict.fromkeys(
        (f"os.{name}" for name in ("system", "popen", "posix_spawn", "posix_spawnp")), _STARTS
    ),
    "pty.spawn": _STARTS,
    "asyncio.create_subprocess_exec": _STARTS,
    "asyncio.create_subprocess_shell": _STARTS,
    **dict.fromkeys(
        (f"{name}.{load}" for name in _PICKLES for load in ("load", "loads")), _UNPICKLES
    ),
    "shelve.open": _UNPICKLES,
}
_STARTERS = re.compile(r"subprocess\.(run|Popen|call|check_\w+|get\w*output)|os\.(exec|spawn)\w+")
STOOD_FOR = {"openevolve", "shinka", "skydiscover", "wrapper"}
"""Modules of the other systems; ``engine.judge`` has what evaluators import of them."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_FARTHEST = 3  # folders up, where an evaluator that changes its path finds modules


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """Something that an evaluator does: where, and in a few words what."""

    path: Path
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: the evaluator {self.what}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Scan:
    """What was found.

    Attributes:
        functions: names of functions at the evaluator's top level, with their definitions, where it
            has them itself.
        names: words that it uses, in the order in which they come up, and then those in its texts.
        joins: what it does that it can't do split from the program.
        modules: its own modules that it imports, itself included.
        shared: folders above the problem's in which some of these lie.
        environment: the environment variables that it asks for.
    """

    functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef | None]
    names: tuple[str, ...]
    joins: tuple[Finding, ...]
    modules: tuple[Path, ...]
    shared: tuple[Path, ...]
    environment: tuple[str, ...]


def scan(evaluator: Path, *, entries: Iterable[str], roots: tuple[Path, ...]) -> Scan:
    """Look through an evaluator.

    Args:
        evaluator: its file.
        entries: its functions that are called; none for a script that is run as a whole.
        roots: folders whose modules it can import as its own.

    Raises:
        UserError: a file does not parse, or imports at its top what is not installed.
    """
    entries = set(entries)
    waiting, seen = [evaluator], {evaluator}
    reached: list[tuple[Path, ast.Module, dict[str, str]]] = []
    shared: tuple[Path, ...] = ()
    while waiting:
        path = waiting.pop(0)
        text = read(path)
        tree = parsed(path, text)
        if "sys.path" in text:
            above = _above(tree, roots, evaluator.parent)
            shared, roots = (*shared, *above), (*roots, *above)
        _check_imports(path, tree, roots)
        reached.append((path, tree, _aliases(tree)))
        for found in _imported(tree, roots):
            if found not in seen:
                seen.add(found)
                waiting.append(found)
    own = reached[0][1]
    parts = list(_reachable(reached, entries))
    return Scan(
        functions=_functions(own),
        names=tuple(
            dict.fromkeys(
                word
                for in_texts in (False, True)
                for _, node, _ in parts
                for word in _words(node, in_texts=in_texts)
            )
        ),
        joins=tuple(found for part in parts for found in _findings(*part)),
        modules=tuple(path for path, _, _ in reached),
        shared=shared,
        environment=tuple(
            name
            for _, node, aliases in parts
            for name in variables(node, partial(_dotted, aliases=aliases))
        ),
    )


def _above(tree: ast.Module, roots: tuple[Path, ...], folder: Path) -> tuple[Path, ...]:
    """Return the folders above one that have modules which code imports and finds nowhere else."""
    found: dict[Path, None] = {}
    for name in imported_names(tree):
        if module_file(name, (*roots, *found)) is None and not _is_installed(name.split(".")[0]):
            above = folder.parents[:_FARTHEST]
            home = next((each for each in above if module_file(name, (each,))), None)
            found |= {home: None} if home else {}
    return tuple(found)


def _functions(tree: ast.Module) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef | None]:
    found: dict[str, ast.FunctionDef | ast.AsyncFunctionDef | None] = {}
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(names=names) | ast.Import(names=names):
                found |= {(each.asname or each.name): None for each in names}
            case ast.Assign(targets=targets):
                found |= {each.id: None for each in targets if isinstance(each, ast.Name)}
    defined = {node.name: node for node in tree.body if isinstance(node, _FUNCTIONS)}
    for node in ast.walk(tree):  # in a try, or under an if
        if isinstance(node, _FUNCTIONS):
            found.setdefault(node.name, None)
    return {**found, **defined}


def _reachable(
    modules: list[tuple[Path, ast.Module, dict[str, str]]], entries: set[str]
) -> Iterator[tuple[Path, ast.AST, dict[str, str]]]:
    """Yield the statements that are reached: module, node, and what its names stand for."""
    is_script = not entries
    waiting: list[tuple[str, tuple[Path, ast.AST, dict[str, str]]]] = []
    words = set(entries)
    for path, tree, aliases in modules:
        for node in tree.body:
            if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
                waiting.append((node.name, (path, node, aliases)))
            elif is_script or not is_main_guard(node):
                words |= set(_words(node))
                yield path, node, aliases
    while found := [each for each in waiting if each[0] in words]:
        waiting = [each for each in waiting if each[0] not in words]
        for _, part in found:
            words |= set(_words(part[1]))
            yield part


def is_main_guard(node: ast.AST) -> bool:
    """Return whether a statement runs something only where its file is the main program."""
    return isinstance(node, ast.If) and any(
        isinstance(each, ast.Constant) and each.value == "__main__" for each in ast.walk(node.test)
    )


def _words(node: ast.AST, *, in_texts: bool = True) -> Iterator[str]:
    """Yield the words of code in the order of the source; of a text its words, or it as a word.

    Without recursion, for which what others wrote may be nested too deeply.
    """
    waiting: list[ast.AST | str] = [node]
    while waiting:
        match waiting.pop():
            case str(name) | ast.Name(id=name):
                yield name
            case ast.Attribute(value=value, attr=name):
                waiting += [name, value]
            case ast.Constant(value=str() as text):
                yield from _WORD.findall(text) if in_texts else [text]
            case ast.AST() as other:
                waiting += reversed([*ast.iter_child_nodes(other)])


def _aliases(tree: ast.Module) -> dict[str, str]:
    """Return the dotted names that a module's names of imported things stand for."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found |= {each.asname: each.name for each in names if each.asname}
            case ast.ImportFrom(module=str() as module, names=names, level=0):
                found |= {(each.asname or each.name): f"{module}.{each.name}" for each in names}
    return found


def _findings(path: Path, part: ast.AST, aliases: dict[str, str]) -> Iterator[Finding]:
    for node in ast.walk(part):
        if not isinstance(node, ast.Call):
            continue
        name = _dotted(node.func, aliases)
        what = _CALLS.get(name) or (_STARTS if _STARTERS.fullmatch(name) else None)
        if name == "numpy.load" and any(each.arg == "allow_pickle" for each in node.keywords):
            what = _UNPICKLES
        if what is not None:
            yield Finding(path=path, line=node.lineno, what=f"{what} ({name})")


def _dotted(node: ast.expr, aliases: dict[str, str]) -> str:
    first, *others = dotted(node) or [""]
    return ".".join([aliases.get(first, first), *others])


def _imported(tree: ast.AST, roots: tuple[Path, ...]) -> Iterator[Path]:
    for name in imported_names(tree):
        path = module_file(name, roots)
        if path is not None:
            yield path


def imported_names(tree: ast.AST) -> Iterator[str]:
    """Yield the dotted names of the modules that code imports, with what may be modules in them."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names)
            case ast.ImportFrom(module=str() as module, names=names, level=0):
                yield module
                yield from (f"{module}.{each.name}" for each in names)


def module_file(name: str, roots: tuple[Path, ...]) -> Path | None:
    """Return the file of a module of the folder's, by its dotted name; None if it has none."""
    for root in roots:
        base = root.joinpath(*name.split("."))
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                return path
    return None


def _check_imports(path: Path, tree: ast.Module, roots: tuple[Path, ...]) -> None:
    """Raise a `UserError` if a file imports what is not installed, where nothing catches that."""
    for node in tree.body:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for name in imported_names(ast.Module(body=[node], type_ignores=[])):
            top = name.partition(".")[0]
            if not is_to_be_had(top, roots):
                raise UserError(
                    f"{path}:{node.lineno}: imports {top}, which is not installed; install it "
                    "where this runs (the folder's requirements may name it)"
                )


def is_to_be_had(name: str, roots: tuple[Path, ...]) -> bool:
    """Return whether a module is the folder's, stands for another system's, or is installed."""
    top = name.partition(".")[0]
    if top in STOOD_FOR:
        return top == name or module_file(name, (SHIMS, *roots)) is not None
    is_here = any((root / top).is_dir() or (root / f"{top}.py").is_file() for root in roots)
    return is_here or _is_installed(top)


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
