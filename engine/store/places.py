"""Where a run's events lie: in a file of its folder, or at a PostgreSQL server that it names.

The folder of a run whose events a server has holds ``run.url`` in place of ``run.db``: the server's
address, and after a ``#`` the schema with the run's table. Passwords are nobody's business there:
libpq finds them (``PGPASSFILE``, ``PGPASSWORD``).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from engine.core import UserError
from engine.store.database import Database, Row
from engine.store.sqlite import DATABASE, SqliteDatabase, create_sqlite

ADDRESS = "run.url"


def is_run(folder: Path) -> bool:
    """Whether a folder says where the events of a run are."""
    return (folder / DATABASE).is_file() or (folder / ADDRESS).is_file()


def log_file(folder: Path) -> Path:
    """Return the file of a run's folder that has its events, or says which server has them."""
    return folder / (ADDRESS if (folder / ADDRESS).is_file() else DATABASE)


def open_database(folder: Path, *, reads_only: bool = False) -> Database:
    """Return the database of the run in a folder; who asks closes it.

    Args:
        folder: the run's.
        reads_only: whether nothing is to be written, not even beside a file.

    Raises:
        UserError: the folder is not a run, or its database can't be opened.
    """
    if not (folder / ADDRESS).is_file():
        return SqliteDatabase(folder, reads_only=reads_only)
    # Only here: most runs ask no server.
    from engine.store.postgres import PostgresDatabase

    url, schema = _address(folder / ADDRESS)
    return PostgresDatabase(url, schema=schema, reads_only=reads_only)


def drop_database(folder: Path) -> None:
    """Remove what a server has of the run in a folder; what is in the folder stays.

    Raises:
        UserError: the server can't be asked.
    """
    if (folder / ADDRESS).is_file():
        from engine.store.server import drop_schema

        url, schema = _address(folder / ADDRESS)
        drop_schema(url, schema=schema)


@contextmanager
def new_database(
    rows: Iterable[Row], *, name: str, url: str | None
) -> Iterator[Callable[[Path], None]]:
    """Make the database of a run, which stays if the block ends well.

    Args:
        rows: the first ones.
        name: the run's.
        url: of the server that is to have them; None for a file in the run's folder.

    Yields:
        What puts the file, or the server's address, into that folder; it raises OSError if it can't
        be written, and ValueError if two events have one kind and subject.

    Raises:
        UserError: the server can't be asked, or has a run of this name.
        ValueError: two events have one kind and subject.
    """
    if url is None:
        yield partial(create_sqlite, rows=rows)
        return
    from engine.store.server import create_schema, drop_schema, schema_of

    schema = schema_of(name)
    create_schema(url, schema=schema, rows=rows)
    try:
        yield lambda folder: _write_address(folder, f"{url}#{schema}\n")
    except BaseException:
        drop_schema(url, schema=schema)
        raise


def check_server(url: str | None, *, names: Sequence[str]) -> None:
    """Check that a server can have the events of new runs; None, for a file, is well.

    Raises:
        UserError: it can't be reached, or has a run of one of these names.
    """
    if url is not None:
        from engine.store.server import check_free, schema_of

        check_free(url, schemas=[schema_of(name) for name in names])


def _address(file: Path) -> tuple[str, str]:
    """Return the server and the schema that a file names."""
    try:
        url, _, schema = file.read_text().strip().partition("#")  # a URL can hold none
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file} can't be read: {error}") from error
    if not url or not schema:
        raise UserError(f"{file} is damaged: it names no server and schema; restore it from a copy")
    return url, schema


def _write_address(folder: Path, line: str) -> None:
    (folder / ADDRESS).write_text(line)


def stamp(folder: Path) -> tuple[object, ...]:
    """Return what changes whenever the log of the run in a folder does, at little cost."""
    if not (folder / ADDRESS).is_file():
        return tuple(_size(folder / each) for each in (DATABASE, f"{DATABASE}-wal"))
    with closing(open_database(folder, reads_only=True)) as database:
        return database.last()


def identity(folder: Path) -> object:
    """Return what tells a run from another one that took its folder's place.

    Raises:
        OSError: the folder is gone.
    """
    address = folder / ADDRESS
    return address.read_text() if address.is_file() else (folder / DATABASE).stat().st_ino


def _size(path: Path) -> object:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino
