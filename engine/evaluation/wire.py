"""What crosses the wall between the evaluator and a candidate: cases in, results out, as bytes.

Cases travel as a JSON header and the arrays' raw bytes. A result is a tag and then either packed
arrays (`RETURNED`, see ``contract``) or three texts (`RAISED`): failure kind, message, traceback,
separated by NUL. Nothing is ever unpickled.

Does not cover: the memory that both lie in (``memory``), and the messages between a pinned thread
and its zygote (``native/protocol.hpp``).
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from engine.core import ArraySpec, Case

RETURNED = b"V"
RAISED = b"F"
RAISED_BYTES = 16 << 10
"""The most bytes that a result with the tag `RAISED` may have."""

_ARRAY, _RANGE = "<array>", "<range>"  # no parameter's names
_HEADER_SIZE = struct.Struct("<Q")


def encode_cases(cases: Sequence[Case]) -> bytes:
    """Return ``cases`` as bytes, for `decode_cases`."""
    arrays: list[bytes] = []

    def encode(value: Any) -> Any:
        """Return what JSON has a name for; the arrays follow in the order of their headers."""
        match value:
            case np.ndarray():
                arrays.append(value.tobytes())
                return {_ARRAY: (value.dtype.str, value.shape)}
            case np.generic():
                return value.item()
            case range():
                return {_RANGE: (value.start, value.stop, value.step)}
            case _:  # a `Case` or an `ArraySpec`
                return {each.name: getattr(value, each.name) for each in fields(value)}

    header = json.dumps(cases, default=encode).encode()
    return b"".join([_HEADER_SIZE.pack(len(header)), header, *arrays])


def decode_cases(data: bytes) -> list[Case]:
    """Return the cases in bytes made by `encode_cases`; their arrays are writable copies."""
    (size,) = _HEADER_SIZE.unpack_from(data)
    offset = _HEADER_SIZE.size + size

    def decode(value: dict[str, Any]) -> Any:
        nonlocal offset
        if _RANGE in value:
            return range(*value[_RANGE])
        if _ARRAY not in value:
            return value
        dtype, shape = value[_ARRAY]
        flat = np.frombuffer(data, dtype=dtype, count=math.prod(shape), offset=offset)
        offset += flat.nbytes
        return flat.reshape(shape).copy()

    return [
        Case(
            name=case["name"],
            args=tuple(case["args"]),
            kwargs=case["kwargs"],
            outputs={
                name: ArraySpec(**{**spec, "shape": tuple(spec["shape"])})
                for name, spec in case["outputs"].items()
            },
        )
        for case in json.loads(data[_HEADER_SIZE.size : offset], object_hook=decode)
    ]
