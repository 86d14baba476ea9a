"""Folders for a process's temporary files, and removing those of dead processes.

Each folder has a lock, which the kernel releases however its holders die. Does not cover what lies
in it: ``engine.evaluation.pool`` and ``engine.inference.kv_server``.
"""

import fcntl
import os
import shutil
import time
from pathlib import Path

_UNLOCKED = "new-"  # begins the name of a folder that has no lock yet
_YOUNG_SECONDS = 60.0  # a folder without a lock may get one for so long


def make_scratch(parent: Path, name: str) -> tuple[Path, int]:
    """Make the folder ``name`` in ``parent``; return it and a descriptor that holds a lock on it.

    The lock is held until every process that inherited the descriptor has closed it or died.

    Raises:
        OSError: ``parent`` can't be written, or has such a folder.
    """
    scratch, unlocked = parent / name, parent / f"{_UNLOCKED}{name}"
    unlocked.mkdir(mode=0o700)
    descriptor = os.open(unlocked, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        unlocked.rename(scratch)  # only now may others look whether it is in use
    except BaseException:
        os.close(descriptor)
        raise
    return scratch, descriptor


def remove_stale(parent: Path, prefix: str) -> list[str]:
    """Remove this user's folders in ``parent`` that nobody holds, of those named ``prefix...``.

    Returns:
        Their names, without those that never had a lock.
    """
    names = [path.name for path in parent.glob(f"{prefix}*") if _remove_unheld(path)]
    oldest = time.time() - _YOUNG_SECONDS
    for path in parent.glob(f"{_UNLOCKED}{prefix}*"):
        _remove_unheld(path, changed_before=oldest)
    return names


def _remove_unheld(folder: Path, *, changed_before: float = float("inf")) -> bool:
    """Remove a folder that is ours, not locked and as old as this; return whether it was."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False  # another process removes it, or it is somebody else's
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid() or found.st_mtime >= changed_before:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return False  # in use
    finally:
        os.close(descriptor)
    return True
