"""A number that changes with whatever decides a problem's scores.

That is: the files directly in the problem's folder and all in its folders ``data`` and ``initial``,
or, where a command judges, in all folders but those that decide nothing; the user's own data; and
the modules of the folder and of `PROJECT` that ``evaluator.py`` imports, at its top or in a
function, and those that these import in turn. The imports are read off the source, so it does not
matter what else the process has loaded, and a kernel that the problem does not import may change.
A line of ``problem.yaml`` that begins with ``target:`` is left out: the target decides what a score
is worth to a learner, and no score, so a run goes on when its problem gets another one.

Does not cover: names of modules that are made at run time (``importlib.import_module``), the
engine, other libraries, and what is compiled of ``native/``, whose numbers are exact and tested to
be those of the Python that they took the place of.
"""

import ast
import hashlib
import importlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path

from engine.core import UserError

PROJECT = ("evaluators", "kernels")
"""The packages of this project whose modules decide scores."""

_OWN = "problem"  # stands for the folder's own package
_DECLARATION = "folder/problem.yaml"
_NO_JUDGE = ("cheats", "pool", "runs")
"""Folders of a problem in which no part of its judge lies."""


def fingerprint(folder: Path, data: Path | None) -> str:
    """Return a SHA-256 of what decides the scores of the problem in ``folder``, wherever it lies.

    Args:
        folder: the problem's.
        data: the user's own file or folder; None for the data that come with the problem.

    Raises:
        UserError: a file can't be read.
    """
    if (folder / "evaluator.py").exists():
        within = [*(folder / "data").rglob("*"), *(folder / "initial").rglob("*")]
    else:  # nobody can say what a command reads
        within = [each for each in folder.rglob("*") if _may_decide(each.relative_to(folder))]
    own = {*folder.glob("[!.]*"), *within}
    parts = {f"folder/{path.relative_to(folder)}": path for path in own if path.is_file()}
    parts |= {f"module/{name}": path for name, path in _imported_modules(folder).items()}
    if data is not None:
        root = data if data.is_dir() else data.parent
        given = data.rglob("*") if data.is_dir() else [data]
        parts |= {f"data/{path.relative_to(root)}": path for path in given if path.is_file()}
    digest = hashlib.sha256()
    for name, path in sorted(parts.items()):
        try:
            with path.open("rb") as file:
                if name == _DECLARATION:
                    content = hashlib.sha256(_without_target(file)).digest()
                else:
                    content = hashlib.file_digest(file, "sha256").digest()
        except OSError as error:
            raise UserError(f"{path} can't be read: {error}") from error
        digest.update(name.encode(errors="surrogateescape") + b"\0" + content)  # its own bytes
    return digest.hexdigest()


def _may_decide(path: Path) -> bool:
    """Whether a file in the folder of a problem that a command judges may decide a score."""
    first = path.parts[0]
    is_left_out = first in _NO_JUDGE or first.startswith(".") or "__pycache__" in path.parts
    return not is_left_out


def _without_target(lines: Iterable[bytes]) -> bytes:
    """Return the lines of ``problem.yaml`` but the target's."""
    return b"".join(line for line in lines if not line.startswith(b"target:"))


def _imported_modules(folder: Path) -> dict[str, Path]:
    """Return the source of each module that the evaluator imports, by its dotted name."""
    roots = {_OWN: folder}
    for package in PROJECT:
        roots[package] = _sources_of(importlib.import_module(package).__path__)
    found: dict[str, Path] = {}
    waiting = [f"{_OWN}.evaluator"]
    while waiting:
        name = waiting.pop()
        path = _source(name, roots)
        if path is not None and name not in found:
            found[name] = path
            waiting += _imports(name, path)
    return found


def _sources_of(folders: Iterable[str]) -> Path:
    """Return the folder of a package that has its sources: what is compiled may have another."""
    return next(path for path in map(Path, folders) if (path / "__init__.py").is_file())


def _source(name: str, roots: Mapping[str, Path]) -> Path | None:
    """Return the file of the module ``name``; None for a stranger and for what is no module."""
    package, *rest = name.split(".")
    if package not in roots:
        return None
    candidates = [roots[package].joinpath(*rest, "__init__.py")]
    if rest:
        candidates.append(roots[package].joinpath(*rest[:-1], f"{rest[-1]}.py"))
    return next((each for each in candidates if each.is_file()), None)


def _imports(module: str, path: Path) -> Iterator[str]:
    """Yield every name that may be a module which ``module`` imports, and its packages."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return  # it can't be imported either
    package = module.split(".")[: None if path.name == "__init__.py" else -1]
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        for name in names:
            yield from accumulate(name.split("."), "{}.{}".format)
