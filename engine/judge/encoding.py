"""Writing values in the form that crosses the channel; see ``engine.judge.values``."""

from collections import deque
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np

from engine.judge.values import (
    FLAT,
    MOST_DEPTH,
    MOST_DIGITS,
    References,
    WireError,
    remember_named_tuple,
    type_name,
)

_LONG = 1 << 63
_KINDS = "biufcSUmM"


def encode(value: object, references: References) -> tuple[Any, list[bytes]]:
    """Return a value's JSON form, and the blobs that it names.

    Raises:
        WireError: it is too deep, or holds something that can't cross.
    """
    blobs: list[bytes] = []
    return _Encoder(references, blobs).encode(value, 0), blobs


class _Encoder:
    def __init__(self, references: References, blobs: list[bytes]) -> None:
        self._references = references
        self._blobs = blobs

    def encode(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in FLAT:
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
        if isinstance(value, type) and (name := type_name(value)):
            return {"y": name}
        return self._reference(value, depth)

    def _reference(self, value: object, depth: int) -> Any:
        return self._references.export(value, lambda inner: self.encode(inner, depth + 1))

    def _items(self, values: Any, depth: int) -> list[Any]:
        kinds = set(map(type, values))
        if kinds <= FLAT and int not in kinds:
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
            remember_named_tuple(type(value), names)
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


def _hex(value: int) -> str:
    digits = f"{value:x}"
    if len(digits) > MOST_DIGITS:
        raise WireError(f"an integer of {len(digits)} hexadecimal digits can't cross")
    return digits
