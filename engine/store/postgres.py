"""A run's events in a schema of a PostgreSQL server.

One process writes: it has an advisory lock, and rows have numbers, so that a process which was cut
off and comes back finds its next number taken, whether the other one still writes or not. A server
that is away is waited for. Once it is back, a write that was reported as failed may have succeeded,
and one that was reported as done may be lost with the server's last moments
(``synchronous_commit=off``, a restored copy). So the writer keeps its last `KEPT` rows, compares
numbers, and sends again what is missing: the store and the run agree, or the run ends with an
error.
"""

import hashlib
import logging
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, repeat

from sqlalchemy import Connection, exc, func, insert, select

from engine.core import UserError
from engine.store.database import EVENTS, Database, Row, last_of
from engine.store.migrations import SCHEMA_VERSION
from engine.store.server import engine_of, line_of, mark, version_of

KEPT = 20_000
"""Rows that a writer has at hand, in case the server has lost them."""
_PAUSES = (0.1, 0.2, 0.5, 1.0)
"""Seconds between the first attempts to reach a server that is away."""
_PAUSE = 2.0  # between all later ones
_SAID_EVERY = 30.0  # seconds
_AWAY = (exc.OperationalError, exc.InterfaceError, exc.InternalError)
_log = logging.getLogger("brood")


class _Busy(Exception):
    """The lock is not free: the server may not have noticed yet that this writer was cut off."""


class PostgresDatabase(Database):
    """See `Database`."""

    def __init__(self, url: str, *, schema: str, reads_only: bool = False) -> None:
        """Connect.

        Args:
            url: of the server's database.
            schema: of the run.
            reads_only: whether others may write.

        Raises:
            UserError: the server can't be reached, has no such run, or another process writes it.
        """
        self._url, self._schema = url, schema
        self._engine = engine_of(url, schema=schema)
        self._connection: Connection | None = None
        self._recent: deque[Row] = deque(maxlen=KEPT)
        self._written = 0  # number of the last row that is known to be there
        try:
            with self._engine.connect() as connection:
                self.version = version_of(connection, self.name)
                self._written, _ = last_of(connection)
            if not reads_only:
                self._connection = self._first_connected()
        except exc.DBAPIError as error:
            self.close()
            raise UserError(f"{self.name} can't be opened: {line_of(error)}") from error
        except _Busy:
            self.close()
            raise UserError(
                f"another process works on {self.name}; wait for it or stop it"
            ) from None
        except UserError:
            self.close()
            raise

    @property
    def name(self) -> str:
        """See `Database.name`."""
        return f"{self._url}#{self._schema}"

    def write(self, rows: Sequence[Row]) -> None:
        """See `Database.write`; waits as long as the server is away."""
        pauses, said, since = chain(_PAUSES, repeat(_PAUSE)), float("-inf"), time.monotonic()
        while True:
            try:
                if self._connection is None:
                    self._connection = self._connected(rows)
                self._write(self._connection, rows)
                break
            except (*_AWAY, _Busy) as error:
                self._drop()
                if time.monotonic() - said > _SAID_EVERY:
                    said = time.monotonic()
                    _log.warning("waiting for %s: %s", self.name, line_of(error))
                time.sleep(next(pauses))
            except exc.DBAPIError as error:  # waiting would mend none of these
                raise UserError(
                    f"{self.name} can't be written: {line_of(error)}; mend that on the server, and "
                    "go on with resume=FOLDER"
                ) from error
        if said > 0:
            _log.warning("%s is back after %.0f s", self.name, time.monotonic() - since)
        self._recent.extend(rows)
        self._written = rows[-1]["seq"]

    def upgrade(self) -> None:
        """See `Database.upgrade`."""
        assert self._connection is not None  # of a log that is opened to be written
        try:
            with self._connection.begin():
                self._rewrite(self._connection)
                mark(self._connection, self._schema)
        except exc.DBAPIError as error:
            raise UserError(f"{self.name} can't be written: {line_of(error)}") from error
        self.version = SCHEMA_VERSION

    def close(self) -> None:
        """See `Database.close`."""
        self._drop()
        self._engine.dispose()

    def _first_connected(self) -> Connection:
        for pause in _PAUSES:  # the server may still be ending the connection of a killed process
            with suppress(_Busy):
                return self._connected()
            time.sleep(pause)
        return self._connected()

    def _connected(self, rows: Sequence[Row] = ()) -> Connection:
        """Return a connection that has the lock, to a server that has all rows written so far.

        Args:
            rows: that a writer which had the lock before is to write next.
        """
        connection = self._engine.connect()
        try:
            free = connection.execute(
                select(func.pg_try_advisory_lock(_key(self._schema)))
            ).scalar()
            connection.commit()  # the lock belongs to the connection
            if not free:
                self._check_not_taken(connection, rows)
                raise _Busy(f"another connection works on {self._schema}")
            self._catch_up(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_not_taken(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Check that the numbers of rows are free, or taken by these: that is not heard of yet."""
        if not rows:
            return
        with connection.begin():
            there = _stored(connection, since=rows[0]["seq"], until=rows[-1]["seq"] + 1)
        if there and there != list(rows):
            raise self._is_anothers()

    def _catch_up(self, connection: Connection) -> None:
        """Send again what the server has lost."""
        with connection.begin():
            there, _ = last_of(connection)
            common = min(there, self._written)
            ours = [row for row in self._recent if row["seq"] == common]
            if ours and _stored(connection, since=common, until=common) != ours:
                raise self._is_anothers()
            lost = [row for row in self._recent if row["seq"] > there]
            if len(lost) < self._written - there:
                raise UserError(
                    f"{self.name} ends with event {there} and had {self._written}, of which the "
                    f"last {len(lost)} are at hand here; restore a later copy of the database"
                )
            if lost:
                connection.execute(insert(EVENTS), lost)
        if lost:
            _log.warning(
                "%s had lost its last %d events; they are there again", self.name, len(lost)
            )

    def _write(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Write rows in a transaction, but for those that are there: its end was not heard of."""
        try:
            with connection.begin():
                connection.execute(insert(EVENTS), rows)
        except exc.IntegrityError as error:
            with connection.begin():
                stored = _stored(connection, since=rows[0]["seq"], until=rows[-1]["seq"])
            if stored == list(rows):
                return
            if stored:
                raise self._is_anothers() from error
            raise ValueError(f"an event is recorded already: {line_of(error)}") from error

    def _is_anothers(self) -> UserError:
        return UserError(
            f"{self.name} has events that this process did not write: another one has gone on "
            "with the run; look there for how it stands"
        )

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(exc.DBAPIError):
                connection.invalidate()  # closed for good, and with it the lock
            connection.close()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """See `Database.reading`."""
        try:
            with self._engine.connect() as connection:
                yield connection
        except exc.DBAPIError as error:
            raise UserError(f"{self.name} can't be read: {line_of(error)}") from error


def _key(schema: str) -> int:
    """Return the number of a run's advisory lock."""
    return int.from_bytes(hashlib.sha256(schema.encode()).digest()[:8], "big", signed=True)


def _stored(connection: Connection, *, since: int, until: int) -> list[Row]:
    within = select(EVENTS).where(EVENTS.c.seq.between(since, until)).order_by(EVENTS.c.seq)
    return [dict(row) for row in connection.execute(within).mappings()]
