"""Settings as Python's keywords: they become the ``key=value`` arguments of the command line.

So there is one set of keys, and one place that checks them: ``engine.config``.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from engine.config import options, quoted
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
    is_name = _is_name(problem, among=shipped())
    return arguments_of({"problem" if is_name else "problem.path": problem})


def model_arguments(model: str | Path) -> list[str]:
    """Return the argument that chooses a model.

    Args:
        model: a preset's name, or the folder or hub id of its weights.
    """
    is_name = _is_name(model, among=options("model"))
    return arguments_of({"model" if is_name else "model.path": model})


def _is_name(given: str | Path, *, among: Collection[str]) -> bool:
    """Whether something is given by its name, and not by its folder; one of ours is a name."""
    if isinstance(given, Path):
        return False
    return given in among or not ("/" in given or Path(given).is_dir())


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
    if isinstance(value, Integral):
        return repr(int(value))
    if isinstance(value, Real):  # NumPy's too, which are written otherwise
        return repr(float(value))
    if isinstance(value, str | Path):
        text = str(value)
        is_plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
        return text if is_plain else quoted(text)
    if isinstance(value, Sequence):
        return f"[{','.join(_text(key, each) for each in value)}]"
    raise UserError(
        f"{key} is {value!r}; it must be text, a number, True, False, None, a list or a mapping"
    )
