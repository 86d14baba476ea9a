"""What a database of events is, and the table that each has.

``sqlite.py`` has one file for each run, ``postgres.py`` a schema of a server for each. Both speak
SQLAlchemy Core to the same table. Rows are only ever added.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Integer,
    MetaData,
    RowMapping,
    Select,
    Table,
    Text,
    UniqueConstraint,
    func,
    select,
)

SCHEMA_VERSION = 9
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
Row = Mapping[str, Any]
"""A row of `EVENTS`, by its columns."""


class Database(Protocol):
    """The events of one run. What is asked for first opens the connection that is needed."""

    @property
    def name(self) -> str:
        """What a message calls it."""

    def write(self, rows: Sequence[Row]) -> None:
        """Add rows, whose ``seq`` goes on from the last one: all of them or none, and on disk.

        Raises:
            UserError: it can't be written.
            ValueError: an event of this kind and subject is there already.
        """

    def rows(self, *, after: int = 0) -> Iterator[RowMapping]:
        """Yield the rows behind the first ``after``, as they are when the first one is read.

        Raises:
            UserError: it is damaged, or can't be read.
        """

    def body(self, kind: str, subject: str) -> str | None:
        """Return the body of one event; None if there is none.

        Raises:
            UserError: it is damaged, or can't be read.
        """

    def last(self) -> tuple[int, int]:
        """Return the last event's number and its session; 0 and -1 where there is none.

        Raises:
            UserError: it is damaged, or can't be read.
        """

    def close(self) -> None:
        """Let go of it; idempotent."""


def rows_after(after: int) -> Select[Any]:
    """Return what asks for the rows behind the first ``after``, in their order."""
    return select(EVENTS).where(EVENTS.c.seq > after).order_by(EVENTS.c.seq)


def body_of(kind: str, subject: str) -> Select[Any]:
    """Return what asks for the body of one event."""
    return select(EVENTS.c.body).where(EVENTS.c.kind == kind, EVENTS.c.subject == subject)


def last_row() -> Select[Any]:
    """Return what asks for the last event's number and its session."""
    return select(
        func.coalesce(func.max(EVENTS.c.seq), 0), func.coalesce(func.max(EVENTS.c.session), -1)
    )
