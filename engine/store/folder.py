"""The folder of a run; it appears whole or not at all, as others may.

A run's folder holds ``config.yaml`` (the settings as resolved), ``run.db`` (the event log, or
``run.url``, which says where that is), ``timeline.json`` (who was busy when) and, when it ends,
``summary.json`` and ``best.py``.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.core import Event, UserError
from engine.durable import make_folders, put_in_place
from engine.store.log import first_rows
from engine.store.places import new_database

_PARTIAL = ".brood-new-"  # begins the name of a folder that is being made
_OLD_SECONDS = 3600.0  # after which nobody makes it any more: that takes some seconds


@contextmanager
def whole_folder(folder: Path, *, advice: str) -> Iterator[Path]:
    """Yield a folder that stands at ``folder``, in one step and on disk, once the block ended well.

    Its parents are made. If the block ends otherwise, nothing is left of it; what a process that
    was killed left beside it is removed an hour later.

    Raises:
        UserError: it can't be written; ``advice`` says what to do about its parent.
    """
    try:
        make_folders(folder.parent)
        partial = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=folder.parent))
    except OSError as error:
        raise UserError(f"{folder.parent} can't be written: {error}; {advice}") from error
    try:
        partial.chmod(0o755)
        _remove_old(beside=partial)
        yield partial
        put_in_place(partial, folder)
    except OSError as error:
        raise UserError(f"{folder} can't be made: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _remove_old(*, beside: Path) -> None:
    """Remove the folders that killed processes were making beside one that was just begun.

    By age, on the file system's own clock: not every network file system locks folders, as
    ``engine.scratch`` does.
    """
    oldest = beside.stat().st_mtime - _OLD_SECONDS
    for each in beside.parent.glob(f"{_PARTIAL}*"):
        with suppress(OSError):  # another process removes it
            if each.lstat().st_mtime < oldest:
                shutil.rmtree(each)


def create_run(
    folder: Path,
    *,
    write_config: Callable[[Path], None],
    events: Iterable[Event],
    url: str | None = None,
    stored_as: str | None = None,
) -> None:
    """Make the folder of a run, with its settings and its first events.

    Args:
        folder: must not exist; its parents are made.
        write_config: writes the settings to the path that it is given.
        events: the first session's.
        url: of the server that is to have the events; None for a file in the folder.
        stored_as: the run's name at the server; None for the folder's.

    Raises:
        UserError: the folder exists or can't be written, or the server can't be asked.
    """
    with (
        new_database(first_rows(events), name=stored_as or folder.name, url=url) as put,
        whole_folder(folder, advice="set runs=FOLDER") as partial,
    ):
        write_config(partial / "config.yaml")
        put(partial)
