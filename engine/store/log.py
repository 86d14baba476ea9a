"""The event log of a run: one SQLite file, appended to and never changed.

Covers: writing events durably, reading them back, and keeping a second process out. The events that
become known at one moment are one transaction, which is on disk when `EventLog.commit` returns (WAL
with ``synchronous=FULL``). The process may die at any moment: what was committed is there, and of
what was not, nothing. An event's (kind, subject) is unique, so nothing is recorded twice. Does not
cover what the events mean: ``events.py``, ``history.py``.
"""

import dataclasses
import fcntl
import math
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Self, cast, get_args

import msgspec

from engine.core import Event, Session, UserError, Verdict

DATABASE = "run.db"
_LOCK = "run.lock"
_LOCK_ATTEMPTS = 5
_LOCK_SECONDS = 0.02  # between two of them
_APPLICATION_ID = 0x42524F44  # "BROD"
_SCHEMA_VERSION = 9
_SCHEMA = """
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    elapsed REAL NOT NULL,  -- wall seconds since the session began
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,     -- JSON
    UNIQUE (kind, subject)
);
"""
_KINDS: Mapping[str, type[Event]] = {kind.KIND: kind for kind in get_args(Event)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """An event as it stands in the log: which session wrote it, and when in that session."""

    session: int
    elapsed: float
    event: Event


class EventLog:
    """The log of one run, held by one process at a time. Use it as a context manager."""

    def __init__(self, folder: Path, *, session: int | None = None) -> None:
        """Open the log in ``folder``.

        Args:
            folder: the run's.
            session: under which events are written; None for the next one.

        Raises:
            UserError: the folder is not a run or can't be written, or another process works on it.
        """
        path = _database(folder)
        self._lock = _take_lock(folder)
        self._began = time.monotonic()
        try:
            self._db = _connect(path, "mode=rw")
        except UserError:
            os.close(self._lock)
            raise
        last = self._db.execute("SELECT max(session) FROM events").fetchone()[0]
        self._path = path
        self.session = (0 if last is None else last + 1) if session is None else session

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def append(self, event: Event) -> Recorded:
        """Add ``event`` to the open transaction; return it as it will stand in the log.

        It is on disk once `commit` returns, and gone if the log is closed before. Seconds count
        from the `Session` event, or else from the opening of the log.

        Raises:
            UserError: the file can't be written.
            ValueError: an event of this kind and subject is there already.
        """
        if isinstance(event, Session):
            self._began = time.monotonic()
        recorded = Recorded(
            session=self.session, elapsed=time.monotonic() - self._began, event=event
        )
        if not self._db.in_transaction:
            _write(self._db, "BEGIN IMMEDIATE")
        _insert(self._db, recorded)
        return recorded

    def leave_out(self, seconds: float) -> None:
        """Have the clock not count seconds in which the run stood still."""
        self._began += seconds

    def commit(self) -> None:
        """Bring all events that were appended to disk, at once; do nothing if there are none.

        Raises:
            UserError: the file can't be written.
        """
        if self._db.in_transaction:
            _write(self._db, "COMMIT")

    def events(self) -> Iterator[Recorded]:
        """Yield all events in the order they were written.

        Raises:
            UserError: the file is damaged.
        """
        return _events(self._db, self._path)

    def close(self) -> None:
        """Close the file, without what was not committed; let other processes have the run."""
        self._db.close()
        os.close(self._lock)


def read_log(folder: Path, *, after: int = 0) -> Iterator[Recorded]:
    """Yield the events of a run in the order they were written, and change nothing.

    The run may go on meanwhile; the events are those of the moment when the first one is read.

    Args:
        folder: the run's.
        after: how many of the first ones to leave out.

    Raises:
        UserError: the folder is not a run, or its log is damaged.
    """
    path = _database(folder)
    with closing(_open_to_read(path)) as db:
        yield from _events(db, path, after=after)


def read_event(folder: Path, kind: type[Event], subject: str) -> Event | None:
    """Return one event of a run, found by its subject; None if the log has none.

    Raises:
        UserError: the folder is not a run, or its log is damaged.
    """
    path = _database(folder)
    with closing(_open_to_read(path)) as db:
        try:
            found = db.execute(
                "SELECT body FROM events WHERE kind = ? AND subject = ?", (kind.KIND, subject)
            ).fetchone()
            return None if found is None else decode(kind.KIND, found[0])
        except (sqlite3.Error, ValueError) as error:
            raise _damaged(path, error) from error


def is_held(folder: Path) -> bool:
    """Whether a process works on a run; False where that can't be told."""
    try:
        descriptor = os.open(folder / _LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def create_log(path: Path, events: Iterable[Event]) -> None:
    """Make a log that holds ``events`` as its first session."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.executescript(
            f"BEGIN; PRAGMA application_id={_APPLICATION_ID};"
            f"PRAGMA user_version={_SCHEMA_VERSION}; {_SCHEMA}"
        )
        for event in events:
            _insert(db, Recorded(session=0, elapsed=0.0, event=event))
        db.execute("COMMIT")


def _database(folder: Path) -> Path:
    path = folder / DATABASE
    if not path.is_file():
        raise UserError(f"{folder} is not a run: it has no {DATABASE}; give a folder under runs/")
    return path


def _open_to_read(path: Path) -> sqlite3.Connection:
    # Without a write-ahead log nobody has the file open, and no such log has to be made to read it.
    is_at_rest = not path.with_name(f"{DATABASE}-wal").exists()
    return _connect(path, "immutable=1" if is_at_rest else "mode=ro")


def _connect(path: Path, how: str) -> sqlite3.Connection:
    # Opened by URI, so that a file that is gone is an error and not an empty log.
    try:
        # A loop may run in another thread than the one that opened its run's log.
        db = sqlite3.connect(
            f"{path.absolute().as_uri()}?{how}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )
        with ExitStack() as on_error:
            on_error.callback(db.close)
            db.execute("PRAGMA synchronous=FULL")
            _check_schema(db, path)
            on_error.pop_all()
    except sqlite3.Error as error:
        raise UserError(f"{path} is not the log of a run: {error}") from error
    return db


def _events(db: sqlite3.Connection, path: Path, *, after: int = 0) -> Iterator[Recorded]:
    try:
        # Nothing is ever removed, so seq counts the events from 1.
        rows = db.execute(
            "SELECT session, elapsed, kind, body FROM events WHERE seq > ? ORDER BY seq", (after,)
        )
        for session, elapsed, kind, body in rows:
            yield Recorded(session=session, elapsed=elapsed, event=decode(kind, body))
    except (sqlite3.Error, KeyError, ValueError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> UserError:
    return UserError(f"{path} is damaged: {error}; restore it from a copy")


def _check_schema(db: sqlite3.Connection, path: Path) -> None:
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if application != _APPLICATION_ID:
        raise UserError(f"{path} is not the log of a run")
    if version != _SCHEMA_VERSION:
        raise UserError(
            f"{path} has schema {version}, and this version reads {_SCHEMA_VERSION}; "
            "resume the run with the version that began it"
        )
    db.execute("SELECT 1 FROM events LIMIT 1")


def _insert(db: sqlite3.Connection, recorded: Recorded) -> None:
    event = recorded.event
    row = (recorded.session, recorded.elapsed, event.KIND, event.subject, encode(event))
    try:
        _write(
            db, "INSERT INTO events (session, elapsed, kind, subject, body) VALUES (?,?,?,?,?)", row
        )
    except sqlite3.IntegrityError as error:
        raise ValueError(f"{event.KIND} {event.subject} is recorded already") from error


def _write(db: sqlite3.Connection, statement: str, row: tuple[object, ...] = ()) -> None:
    try:
        db.execute(statement, row)
    except sqlite3.OperationalError as error:
        raise UserError(
            f"the run's log can't be written: {error}; mend that (is the disk full?) and resume"
        ) from error


def _take_lock(folder: Path) -> int:
    """Lock the run for this process; the kernel lets go of the lock when the process dies."""
    try:
        descriptor = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UserError(f"{folder} can't be written: {error}") from error
    for attempt in range(_LOCK_ATTEMPTS):  # `is_held` has the lock for a moment
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            time.sleep(_LOCK_SECONDS * (attempt + 1 < _LOCK_ATTEMPTS))
    os.close(descriptor)
    raise UserError(f"another process works on {folder}; wait for it or stop it")


def encode(event: Event) -> str:
    """Return the event's fields as a JSON object; numbers keep all their digits.

    A metric that isn't finite becomes text, because JSON has no such numbers.

    Raises:
        ValueError: a score isn't finite.
    """
    if isinstance(event, Verdict):
        event = _with_metrics_as_text(event)
    return msgspec.json.encode(event).decode()


def decode(kind: str, body: str) -> Event:
    """Return the event written by `encode`.

    Raises:
        KeyError, ValueError: there is no such kind of event, or it has other fields.
    """
    of_kind, fields = _KINDS[kind], msgspec.json.decode(body)
    # A verdict's metrics may be numbers as text.
    event = msgspec.convert(fields, of_kind, strict=of_kind is not Verdict)
    if _names(fields) != _names(msgspec.to_builtins(event)):  # msgspec passes over what it lacks
        raise ValueError(f"a body of kind {kind!r} lacks fields, or has others")
    return event


def _names(value: object) -> object:
    """Return the names of an object's fields, and of those of the objects in it."""
    return {name: _names(v) for name, v in value.items()} if isinstance(value, dict) else None


def _with_metrics_as_text(verdict: Verdict) -> Verdict:
    """Replace the metrics that are not finite by their names: ``inf``, ``-inf`` and ``nan``."""
    evaluation = verdict.evaluation
    if evaluation.score is not None and not math.isfinite(evaluation.score):
        raise ValueError(f"JSON has no number for the score {evaluation.score}")
    odd = {name: str(each) for name, each in evaluation.metrics.items() if not math.isfinite(each)}
    if not odd:
        return verdict
    metrics = cast(Mapping[str, float], {**evaluation.metrics, **odd})
    return dataclasses.replace(verdict, evaluation=dataclasses.replace(evaluation, metrics=metrics))
