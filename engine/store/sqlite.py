"""A run's events in a SQLite file of its folder.

With a write-ahead log and ``synchronous=FULL``: what was written is on disk when `write` returns,
and others may read meanwhile. Does not cover keeping a second writer out: ``lock.py``.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, NullPool, create_engine, exc, insert

from engine.core import UserError
from engine.store.database import (
    EVENTS,
    METADATA,
    SCHEMA_VERSION,
    Database,
    Row,
    last_row,
)

DATABASE = "run.db"
# What SQLite says of a damaged file may be no text.
_DAMAGE = (exc.DBAPIError, UnicodeDecodeError)
_APPLICATION_ID = 0x42524F44  # "BROD"


class SqliteDatabase(Database):
    """See `Database`."""

    def __init__(self, folder: Path, *, reads_only: bool = False) -> None:
        """Open the file in a run's folder.

        Args:
            folder: the run's.
            reads_only: whether it stays as it is, and nothing is made beside it.

        Raises:
            UserError: the folder is not a run, or the file can't be opened.
        """
        path = folder / DATABASE
        if not path.is_file():
            raise UserError(
                f"{folder} is not a run: it has no {DATABASE}; give a folder under runs/"
            )
        self._path = path
        how = "mode=rw"
        if reads_only:
            # Without a write-ahead log nobody has the file open, and reading makes none.
            is_at_rest = not path.with_name(f"{DATABASE}-wal").exists()
            how = "immutable=1" if is_at_rest else "mode=ro"
        # By URI, so that a file that is gone is an error and not an empty log.
        self._engine = _engine(f"{path.absolute().as_uri()}?{how}")
        try:
            self._connection = self._engine.connect()
        except _DAMAGE as error:
            raise self._no_log(error) from error
        try:
            _check_schema(self._connection, path)
        except _DAMAGE as error:
            self.close()
            raise self._no_log(error) from error
        except UserError:
            self.close()
            raise

    @property
    def name(self) -> str:
        """See `Database.name`."""
        return str(self._path)

    def write(self, rows: Sequence[Row]) -> None:
        """See `Database.write`."""
        try:
            with self._connection.begin():
                self._connection.exec_driver_sql("BEGIN IMMEDIATE")
                self._connection.execute(insert(EVENTS), rows)
        except exc.IntegrityError as error:
            raise ValueError(f"an event is recorded already: {error.orig}") from error
        except exc.DBAPIError as error:
            raise UserError(
                f"the run's log can't be written: {error.orig}; "
                "mend that (is the disk full?) and resume"
            ) from error

    def close(self) -> None:
        """See `Database.close`."""
        self._connection.close()
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """See `Database.reading`."""
        try:
            with self._engine.connect() as connection:
                yield connection
        except _DAMAGE as error:
            why = getattr(error, "orig", error)
            raise UserError(f"{self._path} is damaged: {why}; restore it from a copy") from error

    def _no_log(self, error: Exception) -> UserError:
        why = getattr(error, "orig", error)
        return UserError(f"{self._path} is not the log of a run: {why}")


def create_sqlite(folder: Path, rows: Iterable[Row]) -> None:
    """Make the file in a run's folder, with its first rows.

    Raises:
        OSError: it can't be written.
        ValueError: two of them have one kind and subject.
    """
    engine = _engine((folder / DATABASE).absolute().as_uri())
    try:
        with engine.connect() as connection, connection.begin():
            for statement in (
                "PRAGMA journal_mode=WAL",
                "BEGIN IMMEDIATE",
                f"PRAGMA application_id={_APPLICATION_ID}",
                f"PRAGMA user_version={SCHEMA_VERSION}",
            ):
                connection.exec_driver_sql(statement)
            METADATA.create_all(connection, checkfirst=False)
            connection.execute(insert(EVENTS), list(rows))
    except exc.IntegrityError as error:
        raise ValueError(f"an event is recorded already: {error.orig}") from error
    except exc.DBAPIError as error:
        raise OSError(str(error.orig)) from error  # SQLite has its own error for a full disk
    finally:
        engine.dispose()


def _engine(uri: str) -> Engine:
    """Return an engine for a file, all of whose connections are new ones.

    Python begins no transaction by itself: a log begins its own, and a reader none.
    """

    def connect() -> sqlite3.Connection:
        # A loop may run in another thread than the one that opened its run's log.
        db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        try:
            db.execute("PRAGMA synchronous=FULL")
        except BaseException:
            db.close()
            raise
        return db

    return create_engine("sqlite://", creator=connect, poolclass=NullPool)


def _check_schema(connection: Connection, path: Path) -> None:
    application = connection.exec_driver_sql("PRAGMA application_id").scalar()
    version = connection.exec_driver_sql("PRAGMA user_version").scalar()
    if application != _APPLICATION_ID:
        raise UserError(f"{path} is not the log of a run")
    if version != SCHEMA_VERSION:
        raise UserError(
            f"{path} has schema {version}, and this version reads {SCHEMA_VERSION}; "
            "resume the run with the version that began it"
        )
    connection.execute(last_row())
    connection.rollback()
