"""A PostgreSQL server: its address, connections to it, and the schemas of runs that it has.

Each run has a schema of its name, which is marked as one, with the form of the events in it. Does
not cover who reads and writes a run's events there: ``postgres.py``.
"""

import hashlib
from collections.abc import Iterable, Sequence

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    NullPool,
    create_engine,
    exc,
    insert,
    inspect,
    make_url,
    text,
)
from sqlalchemy.schema import CreateSchema, DropSchema

from engine.core import UserError
from engine.store.database import EVENTS, METADATA, Row
from engine.store.migrations import SCHEMA_VERSION, check_readable

_LONGEST_NAME = 63  # bytes of a name that PostgreSQL keeps
_CUT_OFF = 20  # seconds after which either side gives up a connection that nothing comes through
_SERVER = {
    "tcp_keepalives_idle": 5,
    "tcp_keepalives_interval": 5,
    "tcp_keepalives_count": 3,
    "tcp_user_timeout": 1000 * _CUT_OFF,
}
_CLIENT = {
    "connect_timeout": 10,
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 1000 * _CUT_OFF,
    "options": " ".join(f"-c {name}={value}" for name, value in _SERVER.items()),
}
_SECRETS = {"password", "sslpassword"}  # that an address's query may have for libpq
_MARK = "brood"


def _checked_url(url: str) -> URL:
    """Return the address of a server's database.

    Raises:
        UserError: it is none, or has a password in it.
    """
    must = f"store is {url!r}; it must be like postgresql://user@host:5432/database"
    try:
        found = make_url(url)
    except (exc.ArgumentError, ValueError) as error:  # ValueError: of a port that is no number
        raise UserError(must) from error
    if found.drivername != "postgresql" or not found.database or "#" in url:
        raise UserError(must)
    if found.password is not None or _SECRETS & {*found.query}:
        raise UserError(
            "store has a password in it, which a run's folder would keep; "
            "give it in the file that PGPASSFILE names"
        )
    return found.set(drivername="postgresql+psycopg")


def engine_of(url: str, *, schema: str) -> Engine:
    """Return an engine for a server's database, whose tables are those of a schema."""
    return create_engine(
        _checked_url(url),
        poolclass=NullPool,
        connect_args=_CLIENT,
    ).execution_options(schema_translate_map={None: schema})


def schema_of(name: str) -> str:
    """Return the schema of a new run, by its name; PostgreSQL cuts off longer ones."""
    data = name.encode()
    if len(data) <= _LONGEST_NAME:
        return name
    return f"{data[:40].decode(errors='ignore')}-{hashlib.sha256(data).hexdigest()[:16]}"


def check_free(url: str, *, schemas: Sequence[str]) -> None:
    """Check that a server can be asked and has no schema of these names.

    Raises:
        UserError: it can't, or it has.
    """
    engine = engine_of(url, schema=schemas[0])
    try:
        with engine.connect() as connection:
            taken = {*inspect(connection).get_schema_names()} & {*schemas}
    except exc.DBAPIError as error:
        raise UserError(
            f"the server of store={url} can't be asked: {line_of(error)}; mend that, or leave "
            "store= away"
        ) from error
    finally:
        engine.dispose()
    if taken:
        raise UserError(f"{url} has a schema {min(taken)!r}; give another name=, or drop it")


def create_schema(url: str, *, schema: str, rows: Iterable[Row]) -> None:
    """Make a run's schema, with its first rows.

    Raises:
        UserError: the server can't be asked, or has a run of this name.
        ValueError: two events have one kind and subject.
    """
    engine = engine_of(url, schema=schema)
    try:
        with engine.begin() as connection:
            connection.execute(CreateSchema(schema))
            METADATA.create_all(connection, checkfirst=False)
            mark(connection, schema)
            connection.execute(insert(EVENTS), list(rows))
    except exc.IntegrityError as error:
        raise ValueError(f"an event is recorded already: {line_of(error)}") from error
    except exc.ProgrammingError as error:
        raise UserError(
            f"{url}#{schema} can't be made: {line_of(error)}; give another name=, or drop that "
            "schema"
        ) from error
    except exc.DBAPIError as error:
        raise UserError(f"{url} can't be written: {line_of(error)}") from error
    finally:
        engine.dispose()


def drop_schema(url: str, *, schema: str) -> None:
    """Remove a run's schema.

    Raises:
        UserError: the server can't be asked.
    """
    engine = engine_of(url, schema=schema)
    try:
        with engine.begin() as connection:
            connection.execute(DropSchema(schema, cascade=True, if_exists=True))
    except exc.DBAPIError as error:
        raise UserError(f"{url}#{schema} can't be removed: {line_of(error)}") from error
    finally:
        engine.dispose()


def version_of(connection: Connection, name: str) -> int:
    """Return the version of the form that a run's events have, by the mark of its schema.

    Args:
        connection: to the server.
        name: of the run's database; see `Database.name`.

    Raises:
        UserError: it is no log, or none that this version reads.
    """
    _, _, schema = name.partition("#")
    found = connection.execute(
        text("SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = :name"),
        {"name": schema},
    ).scalar()
    word, _, version = (found or "").partition(" ")
    if word != _MARK or not (version.isascii() and version.isdecimal()):
        raise UserError(f"{name} is not the log of a run")
    check_readable(int(version), name=name)
    return int(version)


def mark(connection: Connection, schema: str) -> None:
    """Mark a schema of the server as a run's, in the form of this version."""
    quoted = connection.dialect.identifier_preparer.quote(schema)
    connection.exec_driver_sql(f"COMMENT ON SCHEMA {quoted} IS '{_MARK} {SCHEMA_VERSION}'")


def line_of(error: BaseException) -> str:
    """Return the first line of what went wrong."""
    words = str(error.orig if isinstance(error, exc.DBAPIError) else error)
    return words.strip().partition("\n")[0]
