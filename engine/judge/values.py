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

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from math import prod
from operator import itemgetter
from typing import Any, Protocol

import numpy as np

MOST_DEPTH = 60
"""Levels of a value."""
_LONG = 1 << 63
_MOST_DIGITS = 1 << 16  # hexadecimal ones, of a long integer
_KINDS = "biufcSUmM"
_DTYPE = re.compile(r"[<>|=][biufcSUmM][0-9]{1,8}(\[[0-9]{0,6}[a-zA-Z]{1,7}\])?", re.ASCII)
_FLAT = frozenset({type(None), bool, float, str, int})
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


class WireError(Exception):
    """What came over the channel, or is to go over it, has no form that crosses."""


class References(Protocol):
    """What knows the objects that cross as references."""

    def export(self, value: object, encode: Callable[[object], Any]) -> Any:
        """Return the tagged reference for an object that has no plain form."""

    def resolve(self, tag: str, payload: Any, decode: Callable[[Any], Any]) -> Any:
        """Return the object that a reference stands for."""


def encode(value: object, references: References) -> tuple[Any, list[bytes]]:
    """Return a value's JSON form, and the blobs that it names.

    Raises:
        WireError: it is too deep, or holds something that can't cross.
    """
    blobs: list[bytes] = []
    return _Encoder(references, blobs).encode(value, 0), blobs


def decode(
    tree: Any, blobs: Sequence[bytes | bytearray | memoryview], references: References
) -> Any:
    """Return the value behind a JSON form.

    Raises:
        WireError: it is not what `encode` makes.
    """
    try:
        return _Decoder(references, blobs).decode(tree, 0)
    except (TypeError, ValueError, IndexError, KeyError, ArithmeticError, AttributeError) as error:
        raise WireError(f"a malformed value: {type(error).__name__}: {error}") from error


class _Encoder:
    def __init__(self, references: References, blobs: list[bytes]) -> None:
        self._references = references
        self._blobs = blobs

    def encode(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in _FLAT:
            return {"i": _hex(value)} if kind is int and not -_LONG <= value < _LONG else value
        if depth > MOST_DEPTH:
            raise WireError(f"a value is nested more than {MOST_DEPTH} levels deep")
        if kind is list:
            return self._items(value, depth)
        if isinstance(value, Enum):
            return self._reference(value, depth)
        for base, write in _WRITERS:
            if isinstance(value, base):
                return write(self, value, depth)
        if kind.__module__ == "torch" and kind.__name__ == "Tensor":
            return {"T": self.encode(value.detach().cpu().numpy(), depth + 1)}
        if isinstance(value, type) and (name := _type_name(value)):
            return {"y": name}
        return self._reference(value, depth)

    def _reference(self, value: object, depth: int) -> Any:
        return self._references.export(value, lambda inner: self.encode(inner, depth + 1))

    def _items(self, values: Any, depth: int) -> list[Any]:
        kinds = set(map(type, values))
        if kinds <= _FLAT and int not in kinds:
            return list(values)
        return [self.encode(each, depth + 1) for each in values]

    def _blob(self, data: bytes) -> int:
        self._blobs.append(data)
        return len(self._blobs) - 1

    def _array(self, value: Any, depth: int) -> Any:
        value = np.asarray(value)  # of a matrix, a masked array or a subclass: the elements
        if value.dtype.kind == "O":
            return {"u": [list(value.shape), self._items(value.ravel().tolist(), depth + 1)]}
        if value.dtype.kind not in _KINDS:
            raise WireError(f"an array of {value.dtype} can't cross")
        return {"a": [value.dtype.str, list(value.shape), self._blob(value.tobytes())]}

    def _scalar(self, value: Any, depth: int) -> Any:
        if value.dtype.kind in "biuf" and value.dtype.itemsize <= 8:
            return {"g": [value.dtype.str, value.item()]}
        return {"g": [None, self._array(value, depth)]}

    def _mapping(self, value: Any, depth: int) -> Any:
        pairs = list(dict.items(value))
        if all(type(key) is str for key, _ in pairs):
            return {"o": {key: self.encode(each, depth + 1) for key, each in pairs}}
        return {"d": [[self.encode(each, depth + 1) for each in pair] for pair in pairs]}

    def _tuple(self, value: Any, depth: int) -> Any:
        names = getattr(type(value), "_fields", None)
        items = self._items(list(tuple.__iter__(value)), depth + 1)
        if isinstance(names, tuple) and len(names) == len(items):
            _NAMED.setdefault((type(value).__name__, names), type(value))
            return {"n": [list(names), type(value).__name__, items]}
        return {"t": items}

    def _blobbed(self, value: Any, depth: int) -> Any:
        return {"b": self._blob(bytes(value))}


def _listed(tag: str) -> Callable[[_Encoder, Any, int], Any]:
    return lambda encoder, value, depth: {tag: encoder._items(list(value), depth + 1)}


def _parts(tag: str, *names: str) -> Callable[[_Encoder, Any, int], Any]:
    return lambda encoder, value, depth: {tag: [getattr(value, name) for name in names]}


# In order: a NumPy float is a float too.
_WRITERS: tuple[tuple[Any, Callable[[_Encoder, Any, int], Any]], ...] = (
    (np.ndarray, _Encoder._array),
    (np.generic, _Encoder._scalar),
    (bool, lambda encoder, value, depth: bool(value)),
    (int, lambda encoder, value, depth: encoder.encode(int(value), depth)),
    (float, lambda encoder, value, depth: float.__float__(value)),
    (str, lambda encoder, value, depth: str.__str__(value)),
    (dict, _Encoder._mapping),
    (tuple, _Encoder._tuple),
    (list, lambda encoder, value, depth: encoder._items([*list.__iter__(value)], depth)),
    (frozenset, _listed("z")),
    (set, _listed("s")),
    (deque, _listed("q")),
    ((bytes, bytearray, memoryview), _Encoder._blobbed),
    (complex, _parts("c", "real", "imag")),
    (range, _parts("r", "start", "stop", "step")),
    (slice, lambda encoder, value, depth: {
        "l": [encoder.encode(each, depth + 1) for each in (value.start, value.stop, value.step)]
    }),
    (Fraction, lambda encoder, value, depth: {
        "f": [_hex(value.numerator), _hex(value.denominator)]
    }),
    (Decimal, lambda encoder, value, depth: {"D": str(value)}),
)  # fmt: skip


class _Decoder:
    def __init__(
        self, references: References, blobs: Sequence[bytes | bytearray | memoryview]
    ) -> None:
        self._references = references
        self._blobs = blobs

    def decode(self, tree: Any, depth: int) -> Any:
        kind = type(tree)
        if kind in _FLAT:
            return tree
        if depth > MOST_DEPTH + 1:
            raise WireError(f"a value is nested more than {MOST_DEPTH} levels deep")
        if kind is list:
            return self._items(tree, depth)
        if kind is not dict or len(tree) != 1:
            raise WireError("a value is neither plain nor tagged")
        ((tag, payload),) = tree.items()
        if tag in ("x", "w", "e"):
            return self._references.resolve(
                tag, payload, lambda inner: self.decode(inner, depth + 1)
            )
        read = _READERS.get(tag)
        if read is None:
            raise WireError(f"a value has the unknown tag {tag[:20]!r}")
        return read(self, payload, depth + 1)

    def _items(self, tree: Any, depth: int) -> list[Any]:
        if type(tree) is not list:
            raise WireError("a value lacks its list")
        if _FLAT.issuperset(map(type, tree)):
            return tree
        return [self.decode(each, depth + 1) for each in tree]

    def _blob(self, index: Any) -> bytes | bytearray | memoryview:
        if type(index) is not int or not 0 <= index < len(self._blobs):
            raise WireError("a value names no blob")
        return self._blobs[index]

    def _array(self, payload: Any, depth: int) -> Any:
        name, shape, index = payload
        dtype, lengths, data = _dtype(name), _shape(shape), self._blob(index)
        if prod(lengths) * dtype.itemsize != len(data):
            raise WireError("an array has not as many bytes as its shape says")
        if not data:
            if prod(lengths):
                raise WireError("an array has elements without bytes")
            return np.empty(lengths, dtype)
        array = np.frombuffer(data, dtype=dtype).reshape(lengths).copy()
        if dtype.kind == "b" and array.view(np.uint8).max() > 1:  # see `contract`
            raise WireError("a boolean is neither true nor false")
        return array

    def _objects(self, payload: Any, depth: int) -> Any:
        shape, items = payload
        lengths, values = _shape(shape), self._items(items, depth)
        if prod(lengths) != len(values):
            raise WireError("an array has not as many elements as its shape says")
        array = np.empty(len(values), dtype=object)
        for index, each in enumerate(values):  # at once, lists in it would become dimensions
            array[index] = each
        return array.reshape(lengths)

    def _scalar(self, payload: Any, depth: int) -> Any:
        name, value = payload
        if name is None:
            return self.decode(value, depth)[()]
        if type(value) not in (bool, int, float):
            raise WireError("a NumPy scalar is no number")
        dtype = _dtype(name)
        if dtype.kind not in "biuf" or dtype.itemsize > 8:  # others cross as arrays
            raise WireError("a NumPy scalar is of no type that crosses as a number")
        return dtype.type(value)

    def _object(self, payload: Any, depth: int) -> dict[str, Any]:
        if type(payload) is not dict:
            raise WireError("a dict is none")
        return {key: self.decode(each, depth) for key, each in payload.items()}

    def _pairs(self, payload: Any, depth: int) -> dict[Any, Any]:
        return {_key(self.decode(key, depth)): self.decode(each, depth) for key, each in payload}

    def _tensor(self, payload: Any, depth: int) -> Any:
        array = self.decode(payload, depth)
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
            raise WireError("a tensor is no array of numbers")
        import torch

        return torch.from_numpy(array)

    def _named(self, payload: Any, depth: int) -> Any:
        names, title, items = payload
        values = self._items(items, depth)
        if type(names) is not list or len(names) != len(values) or not _are_names([title, *names]):
            raise WireError("a named tuple has no proper names")
        return tuple.__new__(_named_tuple(title, tuple(names)), values)


_NAMED: dict[tuple[str, tuple[str, ...]], type[Any]] = {}
_MOST_NAMED = 1000  # a side that invents more has the others as plain tuples


def _named_tuple(title: str, names: tuple[str, ...]) -> type[Any]:
    """Return the type of tuples with these names that was seen here first; executes no text."""
    found = _NAMED.get((title, names))
    if found is None:
        if len(_NAMED) >= _MOST_NAMED:
            return tuple
        properties = {name: property(itemgetter(at)) for at, name in enumerate(names)}
        found = type(title, (tuple,), {"_fields": names, **properties})
        _NAMED[title, names] = found
    return found


_READERS: Mapping[str, Callable[[_Decoder, Any, int], Any]] = {
    "t": lambda decoder, payload, depth: tuple(decoder._items(payload, depth)),
    "s": lambda decoder, payload, depth: set(map(_key, decoder._items(payload, depth))),
    "z": lambda decoder, payload, depth: frozenset(map(_key, decoder._items(payload, depth))),
    "q": lambda decoder, payload, depth: deque(decoder._items(payload, depth)),
    "n": _Decoder._named,
    "o": _Decoder._object,
    "d": _Decoder._pairs,
    "c": lambda decoder, payload, depth: _complex(payload),
    "b": lambda decoder, payload, depth: bytes(decoder._blob(payload)),
    "i": lambda decoder, payload, depth: _long(payload),
    "r": lambda decoder, payload, depth: _range(payload),
    "l": lambda decoder, payload, depth: slice(*decoder._items(payload, depth)),
    "a": _Decoder._array,
    "u": _Decoder._objects,
    "g": _Decoder._scalar,
    "T": _Decoder._tensor,
    "f": lambda decoder, payload, depth: Fraction(*map(_long, payload)),
    "D": lambda decoder, payload, depth: Decimal(_text(payload)),
    "y": lambda decoder, payload, depth: _named_type(payload),
}


def _dtype(name: Any) -> np.dtype[Any]:
    if type(name) is not str or not _DTYPE.fullmatch(name):
        raise WireError("an array has no dtype that may cross")
    return np.dtype(name)


def _shape(shape: Any) -> tuple[int, ...]:
    lengths = tuple(map(_integer, shape))
    if len(lengths) > 32 or any(length < 0 for length in lengths):
        raise WireError("an array has no shape")
    return lengths


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise WireError("an integer is none")
    return value


def _complex(payload: Any) -> complex:
    real, imaginary = map(_float, payload)
    return complex(real, imaginary)


def _range(payload: Any) -> range:
    start, stop, step = map(_integer, payload)
    return range(start, stop, step)


def _float(value: Any) -> float:
    if type(value) not in (int, float):
        raise WireError("a number is none")
    return float(value)


def _text(value: Any) -> str:
    if type(value) is not str or len(value) > _MOST_DIGITS:
        raise WireError("a number's text is none")
    return value


def _hex(value: int) -> str:
    digits = f"{value:x}"
    if len(digits) > _MOST_DIGITS:
        raise WireError(f"an integer of {len(digits)} hexadecimal digits can't cross")
    return digits


def _long(value: Any) -> int:
    return int(_text(value), 16)


def _key(value: Any) -> Any:
    hash(value)  # TypeError where it has none
    return value


def _are_names(names: Sequence[Any]) -> bool:
    return all(type(name) is str and name.isidentifier() and len(name) <= 200 for name in names)


def _type_name(kind: type[Any]) -> str | None:
    if _TYPES.get(kind.__name__) is kind:
        return kind.__name__
    is_numpy = kind.__name__ in _NUMPY_TYPES and getattr(np, kind.__name__, None) is kind
    return f"numpy.{kind.__name__}" if is_numpy else None


def _named_type(name: Any) -> Any:
    if type(name) is str and name in _TYPES:
        return _TYPES[name]
    if type(name) is str and name.startswith("numpy.") and name[6:] in _NUMPY_TYPES:
        return getattr(np, name[6:])
    raise WireError("a type has no name that may cross")
