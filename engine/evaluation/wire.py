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
from typing import Any

import numpy as np

from engine.core import Array, ArraySpec, Case

RETURNED = b"V"
RAISED = b"F"
RAISED_BYTES = 16 << 10
"""The most bytes that a result with the tag `RAISED` may have."""

_HEADER_SIZE = struct.Struct("<Q")


def encode_cases(cases: Sequence[Case]) -> bytes:
    """Return ``cases`` as bytes, for `decode_cases`."""
    arrays: list[bytes] = []

    def encode_argument(value: Array | float | int) -> dict[str, Any]:
        if isinstance(value, np.ndarray):
            arrays.append(np.ascontiguousarray(value).tobytes())
            return {"dtype": value.dtype.str, "shape": value.shape}
        return {"number": value.item() if isinstance(value, np.generic) else value}

    header = json.dumps(
        [
            {
                "name": case.name,
                "args": [encode_argument(value) for value in case.args],
                "kwargs": {name: encode_argument(value) for name, value in case.kwargs.items()},
                "outputs": {
                    name: {
                        "shape": [_encode_dimension(each) for each in spec.shape],
                        "dtype": spec.dtype,
                        "finite": spec.finite,
                    }
                    for name, spec in case.outputs.items()
                },
            }
            for case in cases
        ]
    ).encode()
    return b"".join([_HEADER_SIZE.pack(len(header)), header, *arrays])


def decode_cases(data: bytes) -> list[Case]:
    """Return the cases in bytes made by `encode_cases`; their arrays are writable copies."""
    (size,) = _HEADER_SIZE.unpack_from(data)
    offset = _HEADER_SIZE.size + size

    def decode_argument(value: dict[str, Any]) -> Array | float | int:
        nonlocal offset
        if "number" in value:
            number: float | int = value["number"]
            return number
        count = math.prod(value["shape"])
        flat = np.frombuffer(data, dtype=value["dtype"], count=count, offset=offset)
        offset += flat.nbytes
        return flat.reshape(value["shape"]).copy()

    # Arguments are decoded in the order in which they were encoded.
    return [
        Case(
            name=case["name"],
            args=tuple(decode_argument(value) for value in case["args"]),
            kwargs={name: decode_argument(value) for name, value in case["kwargs"].items()},
            outputs={
                name: ArraySpec(
                    shape=tuple(_decode_dimension(each) for each in spec["shape"]),
                    dtype=spec["dtype"],
                    finite=spec["finite"],
                )
                for name, spec in case["outputs"].items()
            },
        )
        for case in json.loads(data[_HEADER_SIZE.size : _HEADER_SIZE.size + size])
    ]


def _encode_dimension(dimension: int | range) -> int | list[int]:
    if isinstance(dimension, range):
        return [dimension.start, dimension.stop, dimension.step]
    return dimension


def _decode_dimension(dimension: int | list[int]) -> int | range:
    return range(*dimension) if isinstance(dimension, list) else dimension
