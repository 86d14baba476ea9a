"""A table of evaluations by the keys of programs, which the processes of one run share.

It saves evaluations and is no record of anything: whoever can't reach it goes on without.
"""

import logging

from sqlalchemy import Column, Connection, MetaData, Table, Text, exc, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.schema import CreateSchema

from engine.core import Evaluation, Verdict
from engine.store.form import decode, encode
from engine.store.server import engine_of, schema_of

_METADATA = MetaData()
_VERDICTS = Table(
    "verdicts",
    _METADATA,
    Column("key", Text, primary_key=True),
    Column("body", Text, nullable=False),  # see `text_of`
)
_log = logging.getLogger("brood")


class VerdictTable:
    """See the module. One thread uses it."""

    def __init__(self, url: str, *, name: str) -> None:
        """Make the table if it is not there.

        Args:
            url: of the server's database.
            name: of the run.
        """
        self._schema = schema_of(name)
        self._engine = engine_of(url, schema=self._schema)
        self._connection: Connection | None = None
        self._said = False

    def find(self, key: str) -> Evaluation | None:
        """Return the evaluation of a key; None if there is none to be read, or nobody to ask."""
        try:
            wanted = select(_VERDICTS.c.body).where(_VERDICTS.c.key == key)
            body = self._connected().execute(wanted).scalar()
        except exc.DBAPIError as error:
            self._drop(error)
            return None
        return None if body is None else evaluation_of(body)

    def put(self, key: str, evaluation: Evaluation) -> None:
        """Keep an evaluation, unless there is one of its key."""
        body = text_of(evaluation)
        try:
            row = insert(_VERDICTS).values(key=key, body=body).on_conflict_do_nothing()
            self._connected().execute(row)
        except exc.DBAPIError as error:
            self._drop(error)

    def close(self) -> None:
        """Let go of the server; idempotent."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._engine.dispose()

    def _connected(self) -> Connection:
        if self._connection is None:
            connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            # Two processes that make it at once: one of them fails, and finds it the next time.
            connection.execute(CreateSchema(self._schema, if_not_exists=True))
            _METADATA.create_all(connection)
            self._connection = connection
        return self._connection

    def _drop(self, error: exc.DBAPIError) -> None:
        if self._connection is not None:
            self._connection.invalidate()
            self._connection = None
        if not self._said:
            self._said = True
            _log.warning("verdicts are not shared for now: %s", str(error.orig).partition("\n")[0])


def text_of(evaluation: Evaluation) -> str:
    """Return an evaluation as the table has it: as a verdict in a log, on a program without a name.

    Raises:
        ValueError: its score isn't finite.
    """
    return encode(Verdict(candidate="", evaluation=evaluation))


def evaluation_of(body: str) -> Evaluation | None:
    """Return what `text_of` was given; None for a text that another version wrote, or nobody."""
    try:
        found = decode(Verdict.KIND, body)
    except (KeyError, ValueError, TypeError, RecursionError):
        return None
    assert isinstance(found, Verdict)
    return found.evaluation
