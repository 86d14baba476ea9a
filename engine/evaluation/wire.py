"""The format between the evaluator and its workers: frames of a JSON header and raw bytes.

A frame is two lengths (header: 4 bytes, body: 8 bytes, big-endian), a JSON object and a body.
There are three kinds of message: `Setup` once to the worker, a program to the worker, and an
`Observation` back for each program. Nothing is ever unpickled.

A candidate's own result, inside an observation, is a tag and then either packed arrays
(`RETURNED`) or three texts (`RAISED`): failure kind, message, traceback, separated by NUL.
"""

from __future__ import annotations

import enum
import json
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.core import Array, ArraySpec, Case

RETURNED = b"V"
RAISED = b"F"
RAISED_BYTES = 16 << 10
"""The most bytes that a result with the tag `RAISED` may have."""

_LENGTHS = struct.Struct("!IQ")
_HEADER_BYTES = 64 << 10
_UNBOUNDED = 1 << 62


class Lost(Exception):
    """The other side is gone, or what it sent is no frame."""


class Ended(enum.StrEnum):
    """How a program's run came to its end."""

    EXIT = "exit"  # its process ended by itself
    DEADLINE = "deadline"  # it was killed at its time limit
    OVERSIZE = "oversize"  # it was killed because its result was longer than any valid one


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """What a worker has to know of a problem: how to call a program, not how to score it.

    Attributes:
        entry_point: the function to call.
        cases: the calls, in order.
        isolate_cases: one process per case instead of one for all.
        seconds: wall seconds for all cases together.
        memory_bytes: memory beyond what the warm worker has itself.
    """

    entry_point: str
    cases: list[Case]
    isolate_cases: bool
    seconds: float
    memory_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """What a worker saw of one program's run. Only ``results`` comes from the program itself.

    Attributes:
        ended: how the run ended.
        exit_code: of the last process; the negated signal number when a signal ended it.
        seconds: wall seconds of the run.
        peak_bytes: largest resident size of its processes.
        output: the last part of what it printed.
        results: what the processes wrote, one for all cases or one for each.
    """

    ended: Ended
    exit_code: int
    seconds: float
    peak_bytes: int
    output: str
    results: tuple[bytes, ...]


def send_frame(
    sock: socket.socket, header: Mapping[str, Any], body: bytes = b"", *, deadline: float | None
) -> None:
    """Send one frame; ``deadline`` as in `receive_frame`.

    Raises:
        Lost: the other side is gone.
        TimeoutError: the deadline passed first.
    """
    text = json.dumps(header).encode()
    _set_deadline(sock, deadline)
    try:
        sock.sendall(_LENGTHS.pack(len(text), len(body)) + text + body)
    except TimeoutError:
        raise
    except OSError as error:
        raise Lost(str(error)) from error


def receive_frame(
    sock: socket.socket, *, deadline: float | None, most: int = _UNBOUNDED
) -> tuple[dict[str, Any], bytearray]:
    """Return the header and the body of the next frame.

    Args:
        deadline: on the monotonic clock; None waits for ever.
        most: the most bytes that the body may have.

    Raises:
        Lost: the other side is gone, or its frame is malformed or too long.
        TimeoutError: the deadline passed first.
    """
    header_size, body_size = _LENGTHS.unpack(_receive(sock, _LENGTHS.size, deadline))
    if most < _UNBOUNDED and (header_size > _HEADER_BYTES or body_size > most):
        raise Lost(f"a frame of {header_size} + {body_size} bytes is too long")
    text = _receive(sock, header_size, deadline)
    body = _receive(sock, body_size, deadline)
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Lost(f"a frame's header is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise Lost("a frame's header is not a JSON object")
    return header, body


def _set_deadline(sock: socket.socket, deadline: float | None) -> None:
    if deadline is None:
        sock.settimeout(None)
    elif (left := deadline - time.monotonic()) > 0:
        sock.settimeout(left)
    else:
        raise TimeoutError


def _receive(sock: socket.socket, size: int, deadline: float | None) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        _set_deadline(sock, deadline)
        try:
            count = sock.recv_into(view)
        except TimeoutError:
            raise
        except OSError as error:
            raise Lost(str(error)) from error
        if count == 0:
            raise Lost("the other side closed the connection")
        view = view[count:]
    return data


def encode_setup(setup: Setup) -> tuple[dict[str, Any], bytes]:
    """Return the header and the body of a frame that holds ``setup``."""
    body = bytearray()

    def encode_argument(value: Array | float | int) -> dict[str, Any]:
        if isinstance(value, np.ndarray):
            array = np.ascontiguousarray(value)
            body.extend(array.tobytes())
            return {"dtype": array.dtype.str, "shape": value.shape}
        return {"number": value.item() if isinstance(value, np.generic) else value}

    cases = [
        {
            "name": case.name,
            "args": [encode_argument(value) for value in case.args],
            "kwargs": {name: encode_argument(value) for name, value in case.kwargs.items()},
            "outputs": {
                name: {"shape": spec.shape, "dtype": spec.dtype, "finite": spec.finite}
                for name, spec in case.outputs.items()
            },
        }
        for case in setup.cases
    ]
    header = {
        "entry_point": setup.entry_point,
        "cases": cases,
        "isolate_cases": setup.isolate_cases,
        "seconds": setup.seconds,
        "memory_bytes": setup.memory_bytes,
    }
    return header, bytes(body)


def decode_setup(header: dict[str, Any], body: bytearray) -> Setup:
    """Return the `Setup` of a frame made by `encode_setup`; its arrays are writable copies."""
    offset = 0

    def decode_argument(value: dict[str, Any]) -> Array | float | int:
        nonlocal offset
        if "number" in value:
            number: float | int = value["number"]
            return number
        count = int(np.prod(value["shape"], dtype=np.int64))
        flat = np.frombuffer(body, dtype=value["dtype"], count=count, offset=offset)
        offset += flat.nbytes
        return flat.reshape(value["shape"]).copy()

    def decode_case(case: dict[str, Any]) -> Case:
        return Case(
            name=case["name"],
            args=tuple(decode_argument(value) for value in case["args"]),
            kwargs={name: decode_argument(value) for name, value in case["kwargs"].items()},
            outputs={
                name: ArraySpec(
                    shape=tuple(spec["shape"]), dtype=spec["dtype"], finite=spec["finite"]
                )
                for name, spec in case["outputs"].items()
            },
        )

    fields = {**header, "cases": [decode_case(case) for case in header["cases"]]}
    return Setup(**fields)


def encode_observation(observation: Observation) -> tuple[dict[str, Any], bytes]:
    """Return the header and the body of a frame that holds ``observation``."""
    header = {
        "ended": observation.ended,
        "exit_code": observation.exit_code,
        "seconds": observation.seconds,
        "peak_bytes": observation.peak_bytes,
        "output": observation.output,
        "sizes": [len(result) for result in observation.results],
    }
    return header, b"".join(observation.results)


def decode_observation(header: dict[str, Any], body: bytearray) -> Observation:
    """Return the `Observation` of a frame made by `encode_observation`.

    Raises:
        Lost: the frame is malformed.
    """
    try:
        results = []
        offset = 0
        for size in map(int, header["sizes"]):
            results.append(bytes(body[offset : offset + size]))
            offset += size
        if offset != len(body) or any(size < 0 for size in header["sizes"]):
            raise ValueError("sizes do not add up")
        return Observation(
            ended=Ended(header["ended"]),
            exit_code=int(header["exit_code"]),
            seconds=float(header["seconds"]),
            peak_bytes=int(header["peak_bytes"]),
            output=str(header["output"]),
            results=tuple(results),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise Lost(f"malformed observation: {error}") from error
