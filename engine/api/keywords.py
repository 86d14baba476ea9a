"""Settings as Python's keywords: they become the ``key=value`` arguments of the command line.

So there is one set of keys, and one place that checks them: ``engine.config``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.config import quoted
from engine.core import Problem, UserError
from engine.problem import shipped

_PLAIN = re.compile(r"[A-Za-z]\w*")
_WORDS = ("null", "true", "false", "inf", "nan")


def arguments_of(settings: Mapping[str, Any]) -> list[str]:
    """Return settings as arguments.

    Args:
        settings: values by key; a mapping stands for the keys below it, as in
            ``{"budget": {"candidates": 50}, "seed": 1}``, and so does a key with dots in it.

    Raises:
        UserError: a value is of a kind that no setting has.
    """
    return [f"{key}={_text(key, value)}" for key, value in _flat(settings)]


def problem_arguments(problem: str | Path | Problem) -> list[str]:
    """Return the argument that chooses a problem: a shipped one, or that in a folder.

    Args:
        problem: its name, its folder, or itself; then its name stands for the folder.
    """
    if isinstance(problem, Problem):
        return arguments_of({"problem.path": problem.name})
    is_name = isinstance(problem, str) and (
        problem in shipped() or not ("/" in problem or Path(problem).is_dir())
    )
    return arguments_of({"problem" if is_name else "problem.path": problem})


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _text(key: str, value: object) -> str:
    """Return a value in Hydra's grammar."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str | Path):
        text = str(value)
        is_plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
        return text if is_plain else quoted(text)
    if isinstance(value, Sequence):
        return f"[{','.join(_text(key, each) for each in value)}]"
    raise UserError(
        f"{key} is {value!r}; it must be text, a number, True, False, None, a list or a mapping"
    )
