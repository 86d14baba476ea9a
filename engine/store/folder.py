"""The folder of a run; it appears whole or not at all, as others may.

A run's folder holds ``config.yaml`` (the settings as resolved), ``run.db`` (the event log),
``timeline.json`` (who was busy when) and, when it ends, ``summary.json`` and ``best.py``.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.core import Event, UserError
from engine.store.log import DATABASE, create_log


@contextmanager
def whole_folder(folder: Path, *, advice: str) -> Iterator[Path]:
    """Yield a folder that stands at ``folder``, in one step, once the block has ended well.

    Its parents are made. If the block ends otherwise, nothing is left of it.

    Raises:
        UserError: it can't be written; ``advice`` says what to do about its parent.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise UserError(f"{folder.parent} can't be written: {error}; {advice}") from error
    try:
        partial.chmod(0o755)
        yield partial
        partial.rename(folder)
    except (OSError, sqlite3.Error) as error:  # SQLite has its own error for a full disk
        raise UserError(f"{folder} can't be made: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def create_run(
    folder: Path, *, write_config: Callable[[Path], None], events: Iterable[Event]
) -> None:
    """Make the folder of a run, with its settings and its first events.

    Args:
        folder: must not exist; its parents are made.
        write_config: writes the settings to the path that it is given.
        events: the first session's.

    Raises:
        UserError: the folder exists or can't be written.
    """
    with whole_folder(folder, advice="set runs=FOLDER") as partial:
        write_config(partial / "config.yaml")
        create_log(partial / DATABASE, events)
