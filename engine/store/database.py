"""What a database of events is, and the table that each has.

``sqlite.py`` has one file for each run, ``postgres.py`` a schema of a server for each. Both speak
SQLAlchemy Core to the same table. Rows are only ever added; where an earlier version wrote them,
they are given as this one would have written them (``migrations``).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, cast

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    Integer,
    MetaData,
    RowMapping,
    Table,
    Text,
    UniqueConstraint,
    select,
    update,
)

from engine.core import UserError
from engine.store.migrations import SCHEMA_VERSION, upgraded

METADATA = MetaData()
EVENTS = Table(
    "events",
    METADATA,
    # The n-th event has seq n: nothing is ever removed.
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("session", Integer, nullable=False),
    Column("elapsed", Double, nullable=False),  # wall seconds since the session began
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("body", Text, nullable=False),  # JSON: see form.py
    UniqueConstraint("kind", "subject"),
)
_ROWS_AT_ONCE = 1000
Row = Mapping[str, Any]
"""A row of `EVENTS`, by its columns."""


class Database(ABC):
    """The events of one run. What is asked for first opens the connection that is needed.

    Attributes:
        version: of the schema of the rows as they lie there.
    """

    version: int

    @property
    @abstractmethod
    def name(self) -> str:
        """What a message calls it."""

    @abstractmethod
    def write(self, rows: Sequence[Row]) -> None:
        """Add rows, whose ``seq`` goes on from the last one: all of them or none, and on disk.

        Raises:
            UserError: it can't be written.
            ValueError: an event of this kind and subject is there already.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of it; idempotent."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Connection]:
        """Return a connection of its own: what is read stays as it is while others write.

        Raises:
            UserError: it is damaged, or can't be read; inside the context too.
        """

    @abstractmethod
    def upgrade(self) -> None:
        """Have all rows as this version writes them, in one transaction; this process writes.

        Raises:
            UserError: a row is damaged, or it can't be written.
        """

    def rows(self, *, after: int = 0) -> Iterator[Row]:
        """Yield the rows behind the first ``after``, as they are when the first one is read.

        Raises:
            UserError: see `reading`; or a row of an earlier schema is damaged.
        """
        for row in self._rows(after=after):
            yield self._upgraded(row)

    def _rows(self, *, after: int = 0) -> Iterator[RowMapping]:
        """Yield rows as they lie there."""
        behind = select(EVENTS).where(EVENTS.c.seq > after).order_by(EVENTS.c.seq)
        with self.reading() as connection:
            found = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(behind)
            yield from found.mappings()

    def body(self, kind: str, subject: str) -> str | None:
        """Return the body of one event; None if there is none.

        Raises:
            UserError: see `reading`.
        """
        asked = select(EVENTS).where(EVENTS.c.subject == subject)
        if self.version == SCHEMA_VERSION:  # an earlier one may have had another name for the kind
            asked = asked.where(EVENTS.c.kind == kind)  # by which the index finds it
        with self.reading() as connection:
            found = connection.execute(asked).mappings().all()
        bodies = {each["kind"]: each["body"] for each in map(self._upgraded, found)}
        return bodies.get(kind)

    def last(self) -> tuple[int, int]:
        """Return the last event's number and its session; 0 and -1 where there is none.

        Raises:
            UserError: see `reading`.
        """
        with self.reading() as connection:
            seq, session = last_of(connection)
        if type(session) is not int:  # SQLite keeps anything in any column
            raise UserError(
                f"{self.name} is damaged: an event has no session; restore it from a copy"
            )
        return seq, session

    def _upgraded(self, row: RowMapping) -> Row:
        if self.version == SCHEMA_VERSION:
            return cast(Row, row)
        try:
            kind, body = upgraded(row["kind"], row["body"], version=self.version)
        except (KeyError, ValueError, TypeError) as error:
            raise UserError(
                f"{self.name} is damaged: event {row['seq']}, of schema {self.version}: {error!r}; "
                "restore it from a copy"
            ) from error
        return {**row, "kind": kind, "body": body}

    def _rewrite(self, connection: Connection) -> None:
        """Write the rows that an earlier version wrote otherwise, in an open transaction."""
        for row in self._rows():
            new = self._upgraded(row)
            if new != row:
                of_it = update(EVENTS).where(EVENTS.c.seq == row["seq"])
                connection.execute(of_it.values(kind=new["kind"], body=new["body"]))


def last_of(connection: Connection) -> tuple[int, int]:
    """Return the last event's number and its session; 0 and -1 where there is none."""
    last = select(EVENTS.c.seq, EVENTS.c.session).order_by(EVENTS.c.seq.desc()).limit(1)
    found = connection.execute(last).one_or_none()
    return (0, -1) if found is None else (found.seq, found.session)
