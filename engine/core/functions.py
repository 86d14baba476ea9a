"""What can be told of a problem that is two functions of Python: entry point and fingerprint."""

import ast
import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


def only_function(program: str) -> str:
    """Return the name of the only function at the top of a program.

    Raises:
        ValueError: it does not parse, or has none, or several.
    """
    try:
        tree = ast.parse(program)
    except SyntaxError as error:
        raise ValueError(f"initial_program does not parse: {error}") from error
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if len(names) != 1:
        found = ", ".join(names) or "none"
        raise ValueError(
            f"initial_program has several functions or none ({found}); name entry_point"
        )
    return names[0]


def fingerprint_of(score: Callable[..., Any], cases: Sequence[Any], rest: object) -> str:
    """Return a SHA-256 of what decides a problem's scores, as far as it can be seen.

    Seen are the cases with all their values, the text of ``score`` (where there is none, its byte
    code), and ``rest``. What ``score`` calls, and what it reads from around it, are not.
    """
    digest = hashlib.sha256(repr(rest).encode())
    for case in cases:
        digest.update(repr((case.name, case.outputs)).encode())
        for key, value in [*enumerate(case.args), *sorted(case.kwargs.items())]:
            array = np.asarray(value)
            digest.update(repr((key, array.shape, array.dtype.str)).encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    digest.update(_text(score).encode())
    return digest.hexdigest()


def _text(function: Any) -> str:
    """Return a function's source; without one, its byte code; of another object, its class's."""
    try:
        return inspect.getsource(function if hasattr(function, "__code__") else type(function))
    except (OSError, TypeError):  # of a prompt, or of exec
        return repr(_code(getattr(function, "__code__", None)))


def _code(code: Any) -> object:
    if not inspect.iscode(code):
        return repr(code)
    constants: Mapping[int, object] = {i: _code(each) for i, each in enumerate(code.co_consts)}
    return code.co_code, code.co_names, constants
