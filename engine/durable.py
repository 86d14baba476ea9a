"""Files and folders that a power cut does not take: whole and on disk, or as they were before.

A file is on disk once it was synced, and its name once its folder was. So what is made is written
beside its place, synced, renamed, and then the folder is synced that has the new name.

Does not cover a run's log, which SQLite syncs by itself (``engine.store.sqlite``).
"""

import contextlib
import errno
import os
from pathlib import Path

from engine.core import UserError

_MOST_OF_NAME = 32  # characters of a name; with more, a temporary one could be too long
_NOTHING_TO_SYNC = (errno.EINVAL, errno.ENOTSUP)  # says a file system that keeps no such thing


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file in one step: at ``path`` is either the old file or the whole new one, on disk.

    Text is written as UTF-8.

    Raises:
        UserError: it can't be written; the message names it.
    """
    partial = path.with_name(f".{path.name[:_MOST_OF_NAME]}.partial")
    try:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)
        sync(partial)
        partial.replace(path)
        sync(path.parent)
    except OSError as error:
        raise UserError(f"{path} can't be written: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):  # nor could it be made then
            partial.unlink(missing_ok=True)


def put_in_place(partial: Path, folder: Path) -> None:
    """Have a folder that was made beside it stand at ``folder``, on disk with all that is in it.

    Raises:
        OSError: it can't be, or something stands there.
    """
    for root, _, names in os.walk(partial):
        for name in names:
            sync(Path(root, name))
        sync(Path(root))
    partial.rename(folder)
    sync(folder.parent)


def make_folders(folder: Path) -> None:
    """Make a folder that may be there already, and its parents; their names are on disk.

    Raises:
        OSError: it can't be made.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync(each.parent)


def sync(path: Path) -> None:
    """Bring what a file holds to disk, or the names in a folder.

    Raises:
        OSError: it can't be brought there.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NOTHING_TO_SYNC:
            raise
    finally:
        os.close(descriptor)
