"""The lock of a run's folder: one process at a time works on a run."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.core import UserError

_LOCK = "run.lock"
_ATTEMPTS = 50
_SECONDS = 0.02  # between two of them


def take_lock(folder: Path) -> int:
    """Lock the run for this process; the kernel lets go of the lock when the process dies.

    Returns:
        A descriptor; closing it lets go of the lock.

    Raises:
        UserError: another process has it, or the folder can't be written.
    """
    try:
        descriptor = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UserError(f"{folder} can't be written: {error}") from error
    for attempt in range(_ATTEMPTS):  # `is_held` has it for a moment; longer if it loses its core
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            time.sleep(_SECONDS * (attempt + 1 < _ATTEMPTS))
    os.close(descriptor)
    raise UserError(f"another process works on {folder}; wait for it or stop it")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a run for the length of a ``with`` block; see `take_lock`."""
    descriptor = take_lock(folder)
    try:
        yield
    finally:
        os.close(descriptor)


def is_held(folder: Path) -> bool:
    """Whether a process works on a run; False where that can't be told."""
    try:
        descriptor = os.open(folder / _LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False
