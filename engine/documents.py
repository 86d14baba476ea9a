"""YAML and JSON that others wrote, as plain values, or one kind of error each.

The libraries' readers raise whatever a text makes them stumble over: a date that is none, a tag
that its value does not fit, brackets nested too deeply. Who reads a file wants to say in a line
that it is damaged. Does not cover what the values have to be.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

MOST_VALUES = 1_000_000
"""Values that a YAML text may stand for, each as often as references repeat it."""
_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_MOST_LEVELS = 5000
_STUMBLES = (ValueError, LookupError, AttributeError, TypeError, RecursionError, ArithmeticError)


def _own(loader: Any) -> Any:
    """Return a loader that makes dates of dates, whatever else this process imports.

    A library that vLLM imports (lm-format-enforcer) has PyYAML make texts of them, for everybody.
    """
    made = {**loader.yaml_constructors, _TIMESTAMP: loader.construct_yaml_timestamp}
    return type(loader.__name__, (loader,), {"yaml_constructors": made})


_SLOW = _own(yaml.SafeLoader)
_FAST = _own(getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # wheels of PyYAML have it


def read_yaml(text: str) -> Any:
    """Return what a YAML text holds.

    Raises:
        yaml.YAMLError: it is no YAML of plain values, or stands for more than `MOST_VALUES`.
    """
    with _as_yaml_error():
        value = yaml.load(text, Loader=_loader(text))
        _count(value, {})
    return value


def compose_yaml(text: str) -> yaml.Node | None:
    """Return the nodes of a YAML text, which know their lines; None where it is empty.

    Raises:
        yaml.YAMLError: it is no YAML.
    """
    with _as_yaml_error():
        node: yaml.Node | None = yaml.compose(text, Loader=_loader(text))
    return node


def read_json(text: str | bytes) -> Any:
    """Return what a JSON text holds.

    Raises:
        ValueError: it is no JSON, or nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


@contextmanager
def _as_yaml_error() -> Iterator[None]:
    try:
        yield
    except _STUMBLES as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else f"{error!r:.200}"
        raise yaml.YAMLError(f"a value can't be read: {why}") from error


def _loader(text: str) -> Any:
    """Return libyaml's loader, several times as fast as Python's, if the text can't be too deep.

    libyaml's recurses on the stack of C, which nothing bounds. Each level needs a bracket, or a
    column of some line.
    """
    levels = text.count("[") + text.count("{") + max(map(len, text.splitlines()), default=0)
    return _FAST if levels < _MOST_LEVELS else _SLOW


def _count(value: Any, known: dict[int, int]) -> int:
    """Return how many values one stands for; ``known`` has those of the lists and mappings in it.

    Raises:
        yaml.YAMLError: they are too many, or it holds itself.
    """
    if not isinstance(value, list | dict | tuple | set):
        return 1
    count = known.get(id(value))
    if count is None:
        known[id(value)] = MOST_VALUES  # until it is known: it holds itself
        inner = [*value, *value.values()] if isinstance(value, dict) else value
        count = known[id(value)] = 1 + sum(_count(each, known) for each in inner)
    if count > MOST_VALUES:
        raise yaml.YAMLError("references make it too large, or it holds itself")
    return count
