"""Frames: one JSON value and some byte strings, over a stream, with bounds on all of it.

A frame is a header, the bytes of the JSON, the length of each blob, and the blobs. Who reads takes
no more memory than `MOST_JSON` and `MOST_BLOBS` allow, whatever the header claims, and keeps what
it has of a frame when an exception, such as that of an alarm, comes between.
"""

import json
import os
import struct
from collections.abc import Sequence
from typing import Any

from engine.judge.values import WireError

MOST_JSON = 64 << 20
"""Bytes of a frame's JSON."""
MOST_BLOBS = 1 << 30
"""Bytes of a frame's blobs together."""
MOST_COUNT = 1 << 20
"""Blobs of a frame."""

_HEADER = struct.Struct("<QQQ")  # bytes of JSON, number of blobs, bytes of all blobs
_CHUNK = 1 << 20


class Closed(Exception):
    """The other side is gone."""


class Channel:
    """One end of a connection, by its descriptor; one thread at a time."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = bytearray()
        self._is_torn = False  # a frame was sent in part

    def send(self, tree: Any, blobs: Sequence[bytes] = ()) -> None:
        """Send a frame.

        Raises:
            WireError: it is too large, and nothing of it was sent.
            Closed: the other side is gone.
        """
        try:
            text = json.dumps(tree, separators=(",", ":")).encode(errors="surrogatepass")
        except (ValueError, RecursionError) as error:
            raise WireError(f"a value can't cross: {error}") from error
        total = sum(map(len, blobs))
        _check(len(text), len(blobs), total)
        lengths = struct.pack(f"<{len(blobs)}Q", *map(len, blobs))
        head = _HEADER.pack(len(text), len(blobs), total) + text + lengths
        if self._is_torn:
            raise Closed("a frame was cut short")
        self._is_torn = True
        for part in (head, *blobs):
            self._write(memoryview(part))
        self._is_torn = False

    def receive(self) -> tuple[Any, list[memoryview]]:
        """Return the next frame's JSON value and its blobs.

        Raises:
            WireError: it is none; nothing that follows can be read.
            Closed: the other side is gone.
        """
        self._fill(_HEADER.size)
        size, count, total = _HEADER.unpack_from(self._buffer)
        _check(size, count, total)
        whole = _HEADER.size + size + 8 * count + total
        self._fill(whole)
        frame, self._buffer = self._buffer, bytearray()
        view = memoryview(frame)
        lengths = struct.unpack_from(f"<{count}Q", frame, _HEADER.size + size)
        if sum(lengths) != total:
            raise WireError("a frame's blobs are not as long as it says")
        blobs, at = [], _HEADER.size + size + 8 * count
        for length in lengths:
            blobs.append(view[at : at + length])
            at += length
        try:
            text = str(view[_HEADER.size : _HEADER.size + size], "utf-8", "surrogatepass")
            return json.loads(text), blobs
        except (ValueError, RecursionError) as error:
            raise WireError(f"a frame is no JSON: {type(error).__name__}") from error

    def _write(self, view: memoryview) -> None:
        try:
            while view:
                view = view[os.write(self._descriptor, view[:_CHUNK]) :]
        except OSError as error:
            raise Closed(str(error)) from error

    def _fill(self, size: int) -> None:
        """Read until the buffer has ``size`` bytes, and no more than that."""
        while len(self._buffer) < size:
            try:
                data = os.read(self._descriptor, min(size - len(self._buffer), _CHUNK))
            except OSError as error:
                raise Closed(str(error)) from error
            if not data:
                raise Closed("it ended")
            self._buffer += data


def _check(size: int, count: int, total: int) -> None:
    if size > MOST_JSON or count > MOST_COUNT or total > MOST_BLOBS:
        raise WireError(
            f"a value of {size + total} bytes in {count + 1} parts is too large to cross"
        )
