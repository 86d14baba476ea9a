"""Shared memory between the evaluator and a candidate: its input, sealed, and room for its result.

Both are anonymous files. Their sizes are sealed, so that a candidate can't make the evaluator fault
by cutting one short. An input can't be written any more. A result begins with its length, and is
copied before it is looked at.
"""

from __future__ import annotations

import fcntl
import mmap
import os

LENGTH_BYTES = 8

_SIZE = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


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
