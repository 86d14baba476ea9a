"""Values as they cross the channel: JSON for what is plain, raw bytes for arrays, never a pickle.

None, booleans, integers, floats, texts and lists stand for themselves. All else is an object with
one key, its tag:

    {"t": [...]} tuple          {"n": [names, type, [...]]} named tuple    {"q": [...]} deque
    {"o": {...}} dict of texts  {"d": [[k, v], ...]} other dict            {"r": [a, b, c]} range
    {"s": [...]} set            {"z": [...]} frozenset                     {"l": [a, b, c]} slice
    {"c": [re, im]} complex     {"b": blob} bytes                          {"i": hex} long integer
    {"a": [dtype, shape, blob]} array      {"u": [shape, [...]]} array of objects
    {"g": [dtype, number]} NumPy scalar    {"T": value} torch tensor, from its array
    {"f": [p, q]} Fraction      {"D": text} Decimal                        {"y": name} a type
    {"x": ...}, {"w": ...}, {"e": ...}: references to objects, which `engine.judge.link` gives out

A blob is an index into the frame's byte strings. Subclasses of these types cross as what they are
a subclass of. Whoever decodes believes nothing: a malformed value is a `WireError`.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from engine.judge.proxies import field

MOST_DEPTH = 60
"""Levels of a value."""
MOST_DIGITS = 1 << 16
"""Hexadecimal digits of a long integer."""
FLAT = frozenset({type(None), bool, float, str, int})
"""Types whose values stand for themselves."""
_BUILT_IN: tuple[type[Any], ...] = (bool, int, float, complex, str, bytes, type(None), object)
_CONTAINERS: tuple[type[Any], ...] = (list, tuple, dict, set, frozenset)
_TYPES = {each.__name__: each for each in (*_BUILT_IN, *_CONTAINERS)}
_NUMPY_TYPES = (
    "float64",
    "float32",
    "float16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool_",
)
_MOST_NAMED = 1000  # a side that invents more has the others as plain tuples
_named: dict[tuple[str, tuple[str, ...]], type[Any]] = {}


class WireError(Exception):
    """What came over the channel, or is to go over it, has no form that crosses."""


class References(Protocol):
    """What knows the objects that cross as references."""

    def export(self, value: object, encode: Callable[[object], Any]) -> Any:
        """Return the tagged reference for an object that has no plain form."""

    def resolve(self, tag: str, payload: Any, decode: Callable[[Any], Any]) -> Any:
        """Return the object that a reference stands for."""


def type_name(kind: type[Any]) -> str | None:
    """Return the name by which a type crosses; None for one that does not."""
    if _TYPES.get(kind.__name__) is kind:
        return kind.__name__
    is_numpy = kind.__name__ in _NUMPY_TYPES and getattr(np, kind.__name__, None) is kind
    return f"numpy.{kind.__name__}" if is_numpy else None


def named_type(name: Any) -> Any:
    """Return the type of a name.

    Raises:
        WireError: there is none that may cross.
    """
    if type(name) is str and name in _TYPES:
        return _TYPES[name]
    if type(name) is str and name.startswith("numpy.") and name[6:] in _NUMPY_TYPES:
        return getattr(np, name[6:])
    raise WireError("a type has no name that may cross")


def remember_named_tuple(kind: type[Any], names: tuple[str, ...]) -> None:
    """Have `named_tuple` return this type for its name and its fields' names."""
    _named.setdefault((kind.__name__, names), kind)


def named_tuple(title: str, names: tuple[str, ...]) -> type[Any]:
    """Return the type of tuples with these names that was seen here first; executes no text."""
    found = _named.get((title, names))
    if found is None:
        if len(_named) >= _MOST_NAMED:
            return tuple
        properties = {name: field(name, at) for at, name in enumerate(names)}
        found = type(title, (tuple,), {"_fields": names, **properties})
        _named[title, names] = found
    return found
