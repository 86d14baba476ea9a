"""The event log of a run, appended to and never changed.

Covers: writing events durably, reading them back, and keeping a second process out. The events that
become known at one moment are one transaction, which is on disk when `EventLog.commit` returns. The
process may die at any moment: what was committed is there, and of what was not, nothing. An event's
(kind, subject) is unique, so nothing is recorded twice. Does not cover where the events lie
(``places.py``) or what they mean (``history.py``).
"""

import logging
import math
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from engine.core import Event, Session, UserError
from engine.store.database import Database, Row
from engine.store.form import decode, encode
from engine.store.lock import take_lock
from engine.store.migrations import SCHEMA_VERSION, check_resumable
from engine.store.places import open_database

_log = logging.getLogger("brood")


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """An event as it stands in the log: which session wrote it, and when in that session."""

    session: int
    elapsed: float
    event: Event


class EventLog:
    """The log of one run, held by one process at a time. Use it as a context manager."""

    def __init__(self, folder: Path, *, session: int | None = None) -> None:
        """Open the log of the run in ``folder``, and bring that of an earlier version up to date.

        Args:
            folder: the run's.
            session: under which events are written; None for the next one.

        Raises:
            UserError: the folder is not a run or can't be written, another process works on it, or
                a version of Brood began it after which this one can't go on.
        """
        self._began = time.monotonic()
        self._open: list[Row] = []  # of the transaction
        self._lock = -1
        self._database = open_database(folder)
        try:
            check_resumable(self._database.version, name=self._database.name)
            self._lock = take_lock(folder)
            if self._database.version != SCHEMA_VERSION:
                self._database.upgrade()
                _log.info("%s: its events now have schema %d", self._database.name, SCHEMA_VERSION)
            self._last, last = self._database.last()
        except UserError:
            self.close()
            raise
        self.session = last + 1 if session is None else session

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def append(self, event: Event) -> Recorded:
        """Add ``event`` to the open transaction; return it as it will stand in the log.

        It is on disk once `commit` returns, and gone if the log is closed before. Seconds count
        from the `Session` event, `start_clock`, or else the opening of the log.

        Raises:
            ValueError: `encode` does.
        """
        if isinstance(event, Session):
            self.start_clock()
        recorded = Recorded(
            session=self.session, elapsed=time.monotonic() - self._began, event=event
        )
        self._open.append(row_of(recorded, seq=self._last + len(self._open) + 1))
        return recorded

    def start_clock(self) -> None:
        """Count seconds from now on; call it before anything is appended in this session."""
        self._began = time.monotonic()

    def leave_out(self, seconds: float) -> None:
        """Have the clock not count seconds in which the run stood still."""
        self._began += seconds

    def commit(self) -> None:
        """Bring all events that were appended to disk, at once; do nothing if there are none.

        Raises:
            UserError: they can't be written.
            ValueError: an event of one's kind and subject is there already; then none of them is
                written.
        """
        if self._open:
            rows, self._open = self._open, []
            self._database.write(rows)
            self._last += len(rows)

    def events(self, *, after: int = 0) -> Iterator[Recorded]:
        """Yield the committed events in the order they were written.

        Args:
            after: how many of the first ones to leave out.

        Raises:
            UserError: the log is damaged.
        """
        return recorded_of(self._database, after=after)

    def close(self) -> None:
        """Close the log, without what was not committed; let other processes have the run."""
        self._database.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def read_log(folder: Path, *, after: int = 0) -> Iterator[Recorded]:
    """Yield the events of a run in the order they were written, and change nothing.

    The run may go on meanwhile; the events are those of the moment when the first one is read.

    Args:
        folder: the run's.
        after: how many of the first ones to leave out.

    Raises:
        UserError: the folder is not a run, or its log is damaged.
    """
    with closing(open_database(folder, reads_only=True)) as database:
        yield from recorded_of(database, after=after)


def read_event(folder: Path, kind: type[Event], subject: str) -> Event | None:
    """Return one event of a run, found by its subject; None if the log has none.

    Raises:
        UserError: the folder is not a run, or its log is damaged.
    """
    with closing(open_database(folder, reads_only=True)) as database:
        body = database.body(kind.KIND, subject)
        return None if body is None else _decoded(database, kind.KIND, body)


def check_goes_on(folder: Path) -> None:
    """Check that this version goes on with a run, and change nothing.

    Raises:
        UserError: the folder is not a run, or was begun by a version after which this one can't.
    """
    with closing(open_database(folder, reads_only=True)) as database:
        check_resumable(database.version, name=database.name)


def recorded_of(database: Database, *, after: int = 0) -> Iterator[Recorded]:
    """Yield the events of a database, without the first ``after``.

    Raises:
        UserError: it is damaged.
    """
    for row in database.rows(after=after):
        session, elapsed = row["session"], row["elapsed"]
        is_time = isinstance(elapsed, int | float) and math.isfinite(elapsed)
        if type(session) is not int or not is_time:  # SQLite keeps any
            raise _damaged(database, f"event {row['seq']} has no session or no time")
        event = _decoded(database, row["kind"], row["body"])
        yield Recorded(session=session, elapsed=elapsed, event=event)


def first_rows(events: Iterable[Event]) -> Iterator[Row]:
    """Yield the rows of a run's first session."""
    for seq, event in enumerate(events, start=1):
        yield row_of(Recorded(session=0, elapsed=0.0, event=event), seq=seq)


def row_of(recorded: Recorded, *, seq: int) -> Row:
    """Return the row of an event, which is the log's ``seq``-th.

    Raises:
        ValueError: `encode` does.
    """
    event = recorded.event
    return {
        "seq": seq,
        "session": recorded.session,
        "elapsed": recorded.elapsed,
        "kind": event.KIND,
        "subject": event.subject,
        "body": encode(event),
    }


def _decoded(database: Database, kind: str, body: str) -> Event:
    try:
        return decode(kind, body)
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise _damaged(database, error) from error


def _damaged(database: Database, why: object) -> UserError:
    return UserError(f"{database.name} is damaged: {why}; restore it from a copy")
