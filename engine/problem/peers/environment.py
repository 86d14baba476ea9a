"""The environment variables that an evaluator asks for, which are passed on to its box.

A box begins with an environment of its own. Many evaluators choose a task or an option by a
variable, so those that their source names are passed on as they are set where the engine runs.
Kept back is what its name says is secret, what holds an address with a password or the like in it,
and what a box needs to be as it is.
"""

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator

_GETTERS = ("os.getenv", "os.environ.get", "os.environ.setdefault", "os.environ.pop")
_KEPT_BACK = re.compile(
    r"PATH|HOME|USER|SHELL|LANG|LC_\w+|TMP|TEMP|TMPDIR|LD_\w+|PYTHON\w*"
    r"|\w*(KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH|PRIVATE|COOKIE|WEBHOOK)\w*"
    # But for the shell's folder, a rate of what passes, what is bypassed, and a compass.
    r"|(?!(OLD)?PWD$|PASS_|\w*(BY|COM)PASS)\w*(PASS|PWD|DSN|JWT)(_\w*)?"
    r"|(\w+_)?(PAT|CREDS?)(_\w*)?",
    re.IGNORECASE,
)
_SECRET = re.compile(
    r"://[^/?#\s]*@|(^|[?&;\s])\w*(password|passwd|pwd|token|secret|key|sig)=", re.IGNORECASE
)
"""In a value: who may use an address, before its host or among its parameters."""
_MOST_CHARACTERS = 4096


def variables(part: ast.AST, dotted: Callable[[ast.expr], str]) -> Iterator[str]:
    """Yield the names of environment variables that code asks for by a literal name.

    Args:
        part: some code.
        dotted: returns what the name of an imported thing stands for.
    """
    for node in ast.walk(part):
        match node:
            case ast.Call(func=function, args=[ast.Constant(value=str() as name), *_]):
                if dotted(function) in _GETTERS:
                    yield name
            case ast.Subscript(value=value, slice=ast.Constant(value=str() as name)):
                if dotted(value) == "os.environ":
                    yield name
            case ast.Compare(left=ast.Constant(value=str() as name), comparators=[value]):
                if dotted(value) == "os.environ":
                    yield name


def passed_on(names: Iterable[str]) -> dict[str, str]:
    """Return those of the variables that are set here and may be passed on."""
    return {
        name: os.environ[name]
        for name in sorted(set(names))
        if name in os.environ
        and not _KEPT_BACK.fullmatch(name)
        and len(os.environ[name]) <= _MOST_CHARACTERS
        and not _SECRET.search(os.environ[name])
    }
