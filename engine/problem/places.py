"""Where in a problem's folder something stands or went wrong: ``FILE:LINE``, for messages."""

import ast
import inspect
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from engine.documents import compose_yaml


def place(path: Path, line: int | None) -> str:
    """Return how messages name a line of a file; None for a line that is not known."""
    return str(path) if line is None else f"{path}:{line}"


def place_of_error(error: BaseException, folder: Path, *, otherwise: str) -> str:
    """Return the innermost line of the files in ``folder`` that led to ``error``.

    Args:
        error: that the problem's own code raised; for one of syntax, the line that is none.
        folder: the problem's.
        otherwise: what to return if no line of the folder had a part in it.
    """
    if isinstance(error, SyntaxError) and error.filename and _within(error.filename, folder):
        return place(Path(error.filename), error.lineno)
    steps = [
        (frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    own = [(name, line) for name, line in steps if _within(name, folder)]
    return place(Path(own[-1][0]), own[-1][1]) if own else otherwise


def place_of_callable(function: Callable[..., Any], *, otherwise: Path) -> str:
    """Return the line where a function begins; ``otherwise`` for what is written in no file."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return str(otherwise) if code is None else place(Path(code.co_filename), code.co_firstlineno)


def line_of_function(text: str, name: str) -> int | None:
    """Return the first line of the function or method ``name`` of a module's text."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    lines = [
        node.lineno
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    ]
    return min(lines, default=None)


def place_of_function(path: Path, name: str) -> str:
    """Return the line of ``path`` where the function ``name`` begins, or ``path`` alone."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return str(path)
    return place(path, line_of_function(text, name))


def lines_of_keys(text: str) -> Mapping[str, int]:
    """Return the line of each key of a YAML mapping's first level.

    Raises:
        yaml.YAMLError: the text is no YAML.
    """
    root = compose_yaml(text)
    if not isinstance(root, yaml.MappingNode):
        return {}
    return {str(key.value): key.start_mark.line + 1 for key, _ in root.value}


def place_of_key(folder: Path, key: str) -> str:
    """Return the line of ``key`` in the folder's ``problem.yaml``, that file, or the folder."""
    path = folder / "problem.yaml"
    if not path.is_file():  # of another system, which declares it elsewhere
        return str(folder)
    try:
        lines = lines_of_keys(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        lines = {}
    return place(path, lines.get(key))


def _within(name: str, folder: Path) -> bool:
    return Path(name).is_relative_to(folder)
