"""The folder of a run; it appears whole or not at all, as others may.

A run's folder holds ``config.yaml`` (the settings as resolved), ``run.db`` (the event log, or
``run.url``, which says where that is), ``timeline.json`` (who was busy when) and, when it ends,
``summary.json`` and ``best.py``.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.core import Event, UserError
from engine.durable import make_folders, put_in_place
from engine.store.log import first_rows
from engine.store.places import new_database


@contextmanager
def whole_folder(folder: Path, *, advice: str) -> Iterator[Path]:
    """Yield a folder that stands at ``folder``, in one step and on disk, once the block ended well.

    Its parents are made. If the block ends otherwise, nothing is left of it.

    Raises:
        UserError: it can't be written; ``advice`` says what to do about its parent.
    """
    try:
        make_folders(folder.parent)
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise UserError(f"{folder.parent} can't be written: {error}; {advice}") from error
    try:
        partial.chmod(0o755)
        yield partial
        put_in_place(partial, folder)
    except OSError as error:
        raise UserError(f"{folder} can't be made: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


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
