"""Reading values in the form that crosses the channel, of a sender whom nobody trusts.

See ``engine.judge.values`` for the form.
"""

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from engine.judge.values import (
    FLAT,
    MOST_DEPTH,
    MOST_DIGITS,
    References,
    WireError,
    named_tuple,
    named_type,
)

_DTYPE = re.compile(r"[<>|=][biufcSUmM][0-9]{1,8}(\[[0-9]{0,6}[a-zA-Z]{1,7}\])?", re.ASCII)


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


class _Decoder:
    def __init__(
        self, references: References, blobs: Sequence[bytes | bytearray | memoryview]
    ) -> None:
        self._references = references
        self._blobs = blobs

    def decode(self, tree: Any, depth: int) -> Any:
        kind = type(tree)
        if kind in FLAT:
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
        if FLAT.issuperset(map(type, tree)):
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
        if not _are_fields(names):
            raise WireError("a named tuple has a field that none can have")
        return tuple.__new__(named_tuple(title, tuple(names)), values)


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
    "y": lambda decoder, payload, depth: named_type(payload),
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
    if type(value) is not str or len(value) > MOST_DIGITS:
        raise WireError("a number's text is none")
    return value


def _long(value: Any) -> int:
    return int(_text(value), 16)


def _key(value: Any) -> Any:
    hash(value)  # TypeError where it has none
    return value


def _are_names(names: Sequence[Any]) -> bool:
    return all(type(name) is str and name.isidentifier() and len(name) <= 200 for name in names)


def _are_fields(names: Sequence[str]) -> bool:
    """Return whether `collections.namedtuple` can have made such fields.

    Special methods and what begins with an underscore it never has, but for a name that it replaced
    by its place. Here they would answer in the place of a tuple's own.
    """
    return all(not name.startswith("_") or name == f"_{at}" for at, name in enumerate(names))
