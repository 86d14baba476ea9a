"""A scratch folder that has no bound of its own, and what is done about that.

Where a machine lets nobody mount anything, a box writes in an ordinary folder. Its size is looked
at, and it is emptied after each box. What lies in it was made to be hard to look at, perhaps:
folders nested without end, or such as nobody may read.
"""

import contextlib
import os
import stat
import uuid
from pathlib import Path

_ENTRY_BYTES = 4096
"""What a file or a folder counts besides its blocks."""


def is_larger(folder: Path, most_bytes: int) -> bool:
    """Return whether what is below a folder takes more than that, or can't be looked at.

    Processes may change it meanwhile.
    """
    total, waiting = 0, [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        found = entry.stat(follow_symlinks=False)
                        total += _ENTRY_BYTES + 512 * found.st_blocks
                        if stat.S_ISDIR(found.st_mode):
                            waiting.append(entry.path)
                    if total > most_bytes:
                        return True
        except FileNotFoundError:
            continue
        except OSError:  # it has no right to be unreadable, or to have a path without end
            return True
    return False


def clear(folder: Path) -> None:
    """Empty a folder, or make it; nobody else changes it.

    What is deep below is moved up first: neither a path nor the stack grows with the depth.

    Raises:
        OSError: something in it can't be removed.
    """
    folder.mkdir(exist_ok=True)
    folder.chmod(0o700)
    while entries := _entries(folder):
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                Path(entry).unlink()
                continue
            Path(entry).chmod(0o700)
            for inner in _entries(Path(entry)):
                if inner.is_dir(follow_symlinks=False):
                    Path(inner).chmod(0o700)  # to be moved, it has to be writable
                    Path(inner).rename(folder / uuid.uuid4().hex)
                else:
                    Path(inner).unlink()
            Path(entry).rmdir()


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return list(entries)
