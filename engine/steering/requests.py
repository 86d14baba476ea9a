"""The requests that lie in a run's folder: one file each, taken in the order of their numbers."""

import heapq
import logging
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from engine.core import UserError
from engine.steering.request import Request, decoded

_log = logging.getLogger("brood")

FOLDER = "steering"
"""In a run's folder."""
PAUSED = "paused"
"""File in `FOLDER` that stands there as long as the run is paused."""
_NAME = re.compile(r"\d{6,12}\.json")
_ATTEMPTS = 100  # at a number that nobody else has
_MOST_AT_ONCE = 100  # requests
_MOST_BYTES = 64_000  # of a file


def leave(run: Path, request: Request) -> None:
    """Leave a request for the process that works on a run.

    Args:
        run: the run's folder.
        request: it takes its turn behind those that are there.

    Raises:
        UserError: the folder can't be written.
    """
    folder = run / FOLDER
    try:
        folder.mkdir(exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=".", dir=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(request.encoded())
            _place(folder, Path(temporary))
        finally:
            Path(temporary).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{folder} can't be written: {error.strerror}") from error


def _place(folder: Path, whole: Path) -> None:
    """Give a file that is written the next number, in one step; never that of another one."""
    for _ in range(_ATTEMPTS):
        last = max((int(Path(name).stem) for name in _names(folder)), default=-1)
        try:
            os.link(whole, folder / f"{last + 1:06}.json")  # unlike a rename, it replaces nothing
            return
        except FileExistsError:
            continue
    raise OSError(None, "too many requests at once")


def take(run: Path, *, refused: set[str]) -> Iterator[Request]:
    """Yield the requests that lie in a run's folder, and remove them.

    What is no request is removed too, and told as a warning. What can't be removed is passed over,
    or it would be taken again and again.

    Args:
        run: the run's folder.
        refused: names of files that could not be removed, to which more are added.
    """
    folder = run / FOLDER
    names = (name for name in _names(folder) if name not in refused)
    for name in heapq.nsmallest(_MOST_AT_ONCE, names):
        path = folder / name
        try:
            request = decoded(_content(path))
        except (UserError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            _log.warning("%s is no request to the run: %s; it is removed", path, reason)
            request = None
        if not _remove(path):
            _log.warning("%s can't be removed, so it is passed over", path)
            refused.add(name)
        elif request is not None:
            yield request


def discard(run: Path) -> None:
    """Remove all that lies there: it was meant for a session that is over."""
    folder = run / FOLDER
    for name in _names(folder):
        _remove(folder / name)
    show_paused(run, False)


def show_paused(run: Path, paused: bool) -> None:
    """Let others see whether a run is paused."""
    mark = run / FOLDER / PAUSED
    try:
        if paused:
            mark.touch()
        else:
            mark.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("%s can't be changed: %s", mark, error.strerror)


def is_paused(run: Path) -> bool:
    """Whether the last process that worked on a run left it paused."""
    return (run / FOLDER / PAUSED).exists()


def _names(folder: Path) -> list[str]:
    try:
        return [each.name for each in os.scandir(folder) if _NAME.fullmatch(each.name)]
    except OSError:  # mostly there is no such folder
        return []


def _content(path: Path) -> bytes:
    # What is no plain file might block its reader or lead elsewhere.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UserError("it is not a plain file")
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise UserError(f"it has over {_MOST_BYTES:,} bytes")
    return content


def _remove(path: Path) -> bool:
    """Remove a request; return whether it is gone."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError:
        return False
    return True
