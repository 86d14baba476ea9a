"""Turns at the channel, among processes that the evaluator forked from its own."""

import fcntl
import os
import tempfile
from typing import Self


class Turns:
    """Held by one process at a time, and free again when that dies; may be entered again."""

    def __init__(self) -> None:
        # A lock of this kind belongs to a process, not to a descriptor that it inherited.
        self._descriptor, path = tempfile.mkstemp(prefix="turns-")
        os.unlink(path)  # noqa: PTH108
        self._depth = 0
        self._process = os.getpid()

    def __enter__(self) -> Self:
        if self._process != os.getpid():
            self._process, self._depth = os.getpid(), 0
        if self._depth == 0:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX)
        self._depth += 1
        return self

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN)
