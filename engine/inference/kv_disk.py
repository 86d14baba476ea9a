"""The LMCache server's disk tier: a folder of chunks, kept in bounds.

Covers: removing the chunks that were not used for longest, and noting which ones are used. Several
servers may share the tier, each doing this. Does not cover reading or writing chunks: LMCache's
``fs`` adapter, which neither bounds the tier nor marks what it finds in memory.
"""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path
from typing import Any

SUFFIX = ".data"
"""What the names of the chunks' files end with."""

_ROOM = 0.1  # share of the bound that is freed when it is exceeded
_log = logging.getLogger(__name__)


def prune(folder: Path, limit: int) -> int:
    """Keep the chunks in ``folder`` below ``limit`` bytes; return how many were removed.

    The chunks whose files were changed, or marked as used, longest ago go first. If another server
    is about to read a chunk that is removed, it only has a miss.
    """
    chunks: list[tuple[float, int, str]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(SUFFIX):
                    with contextlib.suppress(FileNotFoundError):  # another server was first
                        stat = entry.stat(follow_symlinks=False)
                        chunks.append((stat.st_mtime, stat.st_size, entry.path))
    except OSError as error:
        _log.warning("the disk tier %s can't be looked at: %s", folder, error)
        return 0
    excess = sum(size for _, size, _ in chunks) - limit
    if excess <= 0:
        return 0
    excess += int(limit * _ROOM)
    removed = 0
    for _, size, path in sorted(chunks):
        if excess <= 0:
            break
        try:
            Path(path).unlink(missing_ok=True)
        except OSError as error:
            _log.warning("%s can't be removed: %s", path, error)
            continue
        excess -= size
        removed += 1
    return removed


class UsedChunks:
    """A listener of LMCache's memory tier that marks the files of chunks that are used.

    The start of every prompt is written first and from then on found in memory. Without the marks
    it would be the first chunk to be removed, and nothing behind it in a prompt could be found.
    """

    def __init__(self, folder: Path) -> None:
        """``folder``: of the disk tier."""
        self._folder = folder
        self._keys: set[Any] = set()

    def mark(self) -> None:
        """Mark what was used since the last call."""
        from lmcache.v1.distributed.l2_adapters.fs_l2_adapter import _object_key_to_filename

        keys, self._keys = self._keys, set()
        for key in keys:
            with contextlib.suppress(OSError):  # it is not there yet, or any more
                os.utime(self._folder / _object_key_to_filename(key))

    def on_l1_keys_reserved_read(self, keys: list[Any]) -> None:
        """Chunks were found in memory."""
        self._keys.update(keys)

    def _ignore(self, keys: list[Any]) -> None:
        """What else LMCache tells its listeners."""

    on_l1_keys_read_finished = _ignore
    on_l1_keys_reserved_write = _ignore
    on_l1_keys_write_finished = _ignore
    on_l1_keys_finish_write_and_reserve_read = on_l1_keys_reserved_read
    on_l1_keys_deleted_by_manager = _ignore
    on_l1_keys_accessed = _ignore
