"""A run's events in a SQLite file of its folder.

With a write-ahead log and ``synchronous=FULL``: what was written is on disk when `write` returns,
and others may read meanwhile. Another program that locks the file, a backup or a shell, is waited
for. Does not cover keeping a second writer out: ``lock.py``.
"""

import logging
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, NullPool, create_engine, exc, insert

from engine.core import UserError
from engine.store.database import EVENTS, METADATA, Database, Row, last_of
from engine.store.migrations import SCHEMA_VERSION, check_readable

DATABASE = "run.db"
# What SQLite says of a damaged file may be no text.
_DAMAGE = (exc.DBAPIError, UnicodeDecodeError)
_APPLICATION_ID = 0x42524F44  # "BROD"
_SAID_EVERY = 30.0  # seconds
# For which SQLite waits by itself: a signal is heard after that, and two of a kind count as one.
_PATIENCE = 0.2
_log = logging.getLogger("brood")


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
        is_writable = os.access(folder, os.W_OK, effective_ids=True)
        if not (reads_only or is_writable):
            raise UserError(
                f"{folder} can't be written; copy it to where it can be, and resume that"
            )
        self._path = path
        self._resources = ExitStack()
        opened, how = path, "mode=rw"
        if reads_only:
            # Without a write-ahead log nobody has the file open, and reading makes none.
            wal, shm = (path.with_name(f"{DATABASE}-{each}") for each in ("wal", "shm"))
            how = "mode=ro" if wal.exists() else "immutable=1"
            if wal.exists() and not shm.exists() and not is_writable:
                opened = self._resources.enter_context(_copied(path, wal))
        # By URI, so that a file that is gone is an error and not an empty log.
        self._engine = _engine(f"{opened.absolute().as_uri()}?{how}")
        self._inode = path.stat().st_ino
        try:
            self._connection = self._engine.connect()
        except _DAMAGE as error:
            self._resources.close()
            raise self._unreadable(error, "is not the log of a run") from error
        try:
            self.version = _schema(self._connection, path)
        except _DAMAGE as error:
            self.close()
            raise self._unreadable(error, "is not the log of a run") from error
        except UserError:
            self.close()
            raise
        self._connection.exec_driver_sql(f"PRAGMA busy_timeout={int(1e3 * _PATIENCE)}")
        self._connection.rollback()

    @property
    def name(self) -> str:
        """See `Database.name`."""
        return str(self._path)

    def write(self, rows: Sequence[Row]) -> None:
        """See `Database.write`; waits as long as another program has the file locked."""
        said, since = float("-inf"), time.monotonic()
        while not self._written(rows):
            if time.monotonic() - said > _SAID_EVERY:
                said = time.monotonic()
                _log.warning("waiting for %s: another program has it locked", self._path)
        if said > 0:
            _log.warning("%s is free after %.0f s", self._path, time.monotonic() - since)
        self._check_place()

    def upgrade(self) -> None:
        """See `Database.upgrade`."""
        try:
            with self._connection.begin():
                self._connection.exec_driver_sql("BEGIN IMMEDIATE")
                self._rewrite(self._connection)
                self._connection.exec_driver_sql(f"PRAGMA user_version={SCHEMA_VERSION}")
        except exc.DBAPIError as error:
            raise UserError(
                f"the run's log can't be written: {error.orig}; "
                "mend that (is the disk full?) and resume"
            ) from error
        self.version = SCHEMA_VERSION

    def close(self) -> None:
        """See `Database.close`."""
        self._connection.close()
        self._engine.dispose()
        self._resources.close()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """See `Database.reading`."""
        try:
            with self._engine.connect() as connection:
                yield connection
        except _DAMAGE as error:
            raise self._unreadable(error, "is damaged") from error

    def _written(self, rows: Sequence[Row]) -> bool:
        """Write rows; return whether they are there, or else the file is locked."""
        try:
            with self._connection.begin():
                self._connection.exec_driver_sql("BEGIN IMMEDIATE")
                self._connection.execute(insert(EVENTS), rows)
        except exc.IntegrityError as error:
            raise ValueError(f"an event is recorded already: {error.orig}") from error
        except exc.DBAPIError as error:
            if _is_locked(error):
                return False
            raise UserError(
                f"{self._path} can't be written: {error.orig}; what was recorded before is there: "
                f"make room or mend the disk, and go on with resume={self._path.parent}"
            ) from error
        return True

    def _check_place(self) -> None:
        """Check that the file is still where it was: an open one is written though it is gone."""
        try:
            is_there = self._path.stat().st_ino == self._inode
        except OSError:
            is_there = False
        if not is_there:
            raise UserError(
                f"{self._path} was removed or moved while the run went on; if it was moved, go on "
                "with resume=FOLDER of where it is now"
            )

    def _unreadable(self, error: Exception, otherwise: str) -> UserError:
        """Return what to say of a file that can't be read: locked, out of reach, or otherwise."""
        if not isinstance(error, exc.DBAPIError):
            return UserError(f"{self._path} {otherwise}: {error}; restore it from a copy")
        if _is_locked(error):
            return UserError(f"{self._path} is locked by another program; wait for it or end it")
        if _primary_code(error) in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
            return UserError(
                f"{self._path} can't be read: {error.orig}; look at its disk: is it full?"
            )
        return UserError(f"{self._path} {otherwise}: {error.orig}; restore it from a copy")


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


@contextmanager
def _copied(path: Path, wal: Path) -> Iterator[Path]:
    """Yield a copy of a log that a killed run left where nothing can be written.

    SQLite makes a file beside a log that has a write-ahead log, and can't make it there.
    """
    with tempfile.TemporaryDirectory(prefix="brood-log-") as folder:
        for each in (path, wal):
            shutil.copyfile(each, Path(folder, each.name))
        yield Path(folder, path.name)


def _is_locked(error: exc.DBAPIError) -> bool:
    return _primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _primary_code(error: exc.DBAPIError) -> int:
    """Return SQLite's code without what it adds in the upper bits; 0 where there is none."""
    return int(getattr(error.orig, "sqlite_errorcode", 0)) & 0xFF


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


def _schema(connection: Connection, path: Path) -> int:
    """Return the schema of a file's events.

    Raises:
        UserError: it is no log, or none that this version reads.
    """
    application = connection.exec_driver_sql("PRAGMA application_id").scalar()
    version: int = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    if application != _APPLICATION_ID:
        raise UserError(f"{path} is not the log of a run")
    check_readable(version, name=str(path))
    last_of(connection)  # an error where there is no table of events
    connection.rollback()
    return version
