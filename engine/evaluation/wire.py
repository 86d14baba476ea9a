"""What crosses the wall between the evaluator and a candidate: cases in, results out, as bytes.

Cases travel as a JSON header and the arrays' raw bytes. A result is a tag and then either packed
arrays (`RETURNED`, see ``contract``) or three texts (`RAISED`): failure kind, message, traceback,
separated by NUL. Nothing is ever unpickled.

Both lie in shared memory, anonymous files whose sizes are sealed, so that a candidate can't make
the evaluator fault by cutting one short. An input can't be written any more. A result begins with
its length, and is copied before it is looked at.

Does not cover: the messages between a pinned thread and its zygote (``native/protocol.hpp``).
"""

import fcntl
import json
import math
import mmap
import os
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

LENGTH_BYTES = 8

_SIZE = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
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


def sealed_input(data: bytes) -> int:
    """Return a descriptor of memory that holds ``data`` for good."""
    fd = os.memfd_create("input", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SIZE | fcntl.F_SEAL_WRITE)
    return fd


def read_input(fd: int) -> bytes:
    """Return all that an input holds."""
    with mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as memory:
        return memory[:]


class ResultMemory:
    """Room for one result of at most ``capacity`` bytes, as the evaluator sees it."""

    def __init__(self, capacity: int) -> None:
        self.fd = os.memfd_create("result", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, LENGTH_BYTES + capacity)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, _SIZE)
        self._memory = mmap.mmap(self.fd, LENGTH_BYTES + capacity)

    def read(self) -> bytes:
        """Return a copy of the result, at most ``capacity`` bytes whatever its length claims."""
        length = int.from_bytes(self._memory[:LENGTH_BYTES], "little")
        return self._memory[LENGTH_BYTES : LENGTH_BYTES + min(length, len(self._memory))]

    def close(self) -> None:
        """Give the memory up."""
        self._memory.close()
        os.close(self.fd)


def map_result(fd: int) -> mmap.mmap:
    """Return the memory behind a result's descriptor, to write to."""
    return mmap.mmap(fd, 0)


def write_result(memory: mmap.mmap, result: bytes) -> None:
    """Write a result for `ResultMemory.read`, its length last.

    Raises:
        ValueError: it is longer than its memory.
    """
    memory.seek(LENGTH_BYTES)
    memory.write(result)
    memory[:LENGTH_BYTES] = len(result).to_bytes(LENGTH_BYTES, "little")
