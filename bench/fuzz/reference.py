"""What crosses the wire, decoded a second time: slowly, plainly, and without the engine's code."""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections import deque
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

_FAILURES = ("memory", "error", "output")  # that a program may claim
_MOST_JSON, _MOST_BLOBS, _MOST_COUNT = 64 << 20, 1 << 30, 1 << 20

Dimension = int | range
Spec = tuple[str, Sequence[Dimension], bool]
"""A type of `struct`, the lengths, and whether all numbers are finite."""


def result_of(data: bytes, specs: Sequence[Spec]) -> tuple[float | None, str | None]:
    """Return the score of `checksum` and the failure that a result deserves.

    Args:
        data: the result, its tag first.
        specs: of the arrays of all cases, in order.
    """
    if data[:1] == b"F":
        parts = data[1:].decode(errors="replace").split("\0")
        return None, parts[0] if len(parts) == 3 and parts[0] in _FAILURES else "output"
    if data[:1] != b"V":
        return None, "output"
    at, total = 1, 0
    for code, lengths, is_finite in specs:
        shape = []
        for each in lengths:
            length = each if isinstance(each, int) else -1
            if isinstance(each, range):
                if len(data) < at + 8:
                    return None, "output"
                (length,) = struct.unpack_from("<Q", data, at)
                at += 8
                if not each.start <= length < each.stop:
                    return None, "output"
            shape.append(length)
        size = struct.calcsize(f"<{code}") * math.prod(shape)
        part = data[at : at + size]
        if len(part) < size:
            return None, "output"
        numbers = struct.unpack(f"<{math.prod(shape)}{'B' if code == '?' else code}", part)
        if code == "?" and any(each > 1 for each in numbers):
            return None, "output"
        if is_finite and not all(map(math.isfinite, numbers)):
            return None, "output"
        total = zlib.crc32(part + bytes(shape), total)
        at += size
    return (float(total), None) if at == len(data) else (None, "output")


def checksum(outputs: Sequence[Any]) -> float:
    """Return a score that any difference in the arrays of all cases changes."""
    total = 0
    for arrays in outputs:
        for array in arrays.values():
            total = zlib.crc32(array.tobytes() + bytes(array.shape), total)
    return float(total)


def frames_of(data: bytes) -> tuple[list[tuple[Any, list[bytes]]], str]:
    """Return the frames that a stream begins with, and how it ends: ``cut`` or ``malformed``."""
    found: list[tuple[Any, list[bytes]]] = []
    while True:
        if len(data) < 24:
            return found, "cut"
        size, count, total = (int.from_bytes(data[at : at + 8], "little") for at in (0, 8, 16))
        if size > _MOST_JSON or count > _MOST_COUNT or total > _MOST_BLOBS:
            return found, "malformed"
        end = 24 + size + 8 * count + total
        if len(data) < end:
            return found, "cut"
        lengths = [
            int.from_bytes(data[at : at + 8], "little")
            for at in range(24 + size, 24 + size + 8 * count, 8)
        ]
        if sum(lengths) != total:
            return found, "malformed"
        try:
            tree = json.loads(data[24 : 24 + size].decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            return found, "malformed"
        blobs, at = [], end - total
        for length in lengths:
            blobs.append(data[at : at + length])
            at += length
        found.append((tree, blobs))
        data = data[end:]


def verdict_of(stdout: str, metric: str) -> float | None:
    """Return the score in a judge's last line; None if it gives none."""
    lines = [line for line in stdout.split("\n") if line.strip()]
    try:
        found = json.loads(lines[-1]) if lines else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    error = found.get("error")
    if not (error is None or error is False or error == ""):
        return None
    # Of several names that are shown alike, such as with other spaces, the last one counts.
    scores = [
        value
        for name, value in found.items()
        if _shown(name) == metric and isinstance(value, int | float)
    ]
    try:
        score = float(scores[-1]) if scores else math.nan
    except OverflowError:
        return None
    return score if math.isfinite(score) else None


def _shown(name: str) -> str:
    printable = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in name)
    return " ".join(printable.split())[:100]


def same(one: Any, other: Any) -> bool:
    """Return whether two values are of one type and alike to the last bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return False
        if one.dtype.kind != "O":
            return bool(one.tobytes() == other.tobytes())
        return all(map(same, one.ravel().tolist(), other.ravel().tolist()))
    if isinstance(one, np.generic):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, list | tuple | deque):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same([*one.items()], [*other.items()])
    if isinstance(one, set | frozenset):
        return sorted(map(repr, one)) == sorted(map(repr, other))
    if isinstance(one, float):
        return struct.pack("<d", one) == struct.pack("<d", other)
    if isinstance(one, complex):
        return same(one.real, other.real) and same(one.imag, other.imag)
    if isinstance(one, Decimal):
        return str(one) == str(other)
    if isinstance(one, slice):
        return same([one.start, one.stop, one.step], [other.start, other.stop, other.step])
    return bool(one == other)
