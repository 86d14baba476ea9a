"""The file system that a run's folder lies on: whether it can be written, and what it is.

SQLite's write-ahead log wants all processes that have it open, readers too, on one machine: they
share memory through a file beside it. It also relies on locks and on synced writes. A network file
system keeps these promises for one machine at a time at best. So such a run is warned of and not
refused: on many machines there is nothing else, and with one machine at a time it works.
"""

import logging
import os
import re
from pathlib import Path

from engine.core import UserError

_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|afs|9p|ceph|lustre|gpfs|beegfs|glusterfs|orangefs|ocfs2|gfs2|fuse\..*"
)
"""Names of kinds of file systems that several machines share, or that may pass on to one."""
_MOUNTS = Path("/proc/self/mountinfo")
_log = logging.getLogger("brood")


def check_place(folder: Path) -> None:
    """Check that a folder, which need not be there, can be made and written.

    Raises:
        UserError: it can't be.
    """
    nearest = next(each for each in (folder, *folder.absolute().parents) if os.path.lexists(each))
    if not nearest.is_dir():
        raise UserError(f"{nearest} is not a folder, so {folder} can't be made; set runs=FOLDER")
    if not os.access(nearest, os.W_OK | os.X_OK, effective_ids=True):
        raise UserError(f"{nearest} can't be written, so {folder} can't be made; set runs=FOLDER")


def warn_of_network(folder: Path) -> None:
    """Say what a run's log needs where its folder lies, or is to lie, on a network file system."""
    if (kind := network_kind(folder)) is not None:
        _log.warning(
            "%s lies on a network file system (%s): let one machine at a time open the run, its "
            "reports and dashboard included, or set runs=FOLDER on a local disk or "
            "store=postgresql://HOST/DATABASE",
            folder,
            kind,
        )


def network_kind(folder: Path, *, mounts: Path = _MOUNTS) -> str | None:
    """Return the kind of the network file system that a folder lies on; None for a local one.

    Args:
        folder: need not be there.
        mounts: what is mounted where, as Linux says it.
    """
    place = folder.resolve()
    found, kind = Path("/"), ""
    try:
        lines = mounts.read_text(errors="surrogateescape").splitlines()
    except OSError:  # no such file: it can't be told
        return None
    for line in lines:
        before, _, after = line.partition(" - ")
        point = Path(_plain(before.split()[4]))
        # Of those that cover each other, the last one is seen.
        if place.is_relative_to(point) and len(point.parts) >= len(found.parts):
            found, kind = point, after.split()[0]
    return kind if _NETWORK.fullmatch(kind) else None


def _plain(escaped: str) -> str:
    """Return a mount point without the octal escapes of spaces and the like."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), escaped)
