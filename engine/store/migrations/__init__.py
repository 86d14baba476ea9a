"""What events looked like in earlier schemas, and the step from each to the next.

A step makes of one row what the next schema would have written: its kind and its fields change,
its number, subject, session and time do not. So a log keeps its length and order, and whatever
counts its events, as a call's ``known`` does, stays true. Steps are pure: a reader takes them row
by row and leaves the database as it is; a run that goes on has all rows rewritten in one
transaction (`Database.upgrade`).

To change the form of an event: raise `SCHEMA_VERSION`, and add the step here, in a file named after
the schema that it begins with. A test compares the form with the number, so neither is forgotten.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from engine.core import UserError
from engine.store.migrations import schema_6, schema_8, schema_9, schema_10

SCHEMA_VERSION = 11
"""Of the events that this version writes."""
Fields = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Step:
    """From one schema to the next.

    Attributes:
        to: the next one.
        event: given the kind and the fields of an event, returns them as the next one has them.
        goes_on: whether a run goes on after it: whether today's search, told these events, is where
            the run was. If not, its events are read and reported on, and that is all.
    """

    to: int
    event: Callable[[str, Fields], tuple[str, Fields]]
    goes_on: bool


STEPS: Mapping[int, Step] = {
    6: Step(to=8, event=schema_6.event, goes_on=False),
    8: Step(to=9, event=schema_8.event, goes_on=False),
    9: Step(to=10, event=schema_9.event, goes_on=True),
    10: Step(to=11, event=schema_10.event, goes_on=True),
}
"""By the schema that they begin with. Nobody released 7, and what was before 6 is not read."""


def check_readable(version: int, *, name: str) -> None:
    """Check that the events of a log can be read.

    Args:
        version: of its schema.
        name: what messages call it.

    Raises:
        UserError: a newer version of Brood wrote it, or one that is too old.
    """
    if version > SCHEMA_VERSION:
        raise UserError(
            f"{name} has schema {version}, and this version of Brood reads none above "
            f"{SCHEMA_VERSION}; read it, or go on, with the newer version that wrote it"
        )
    if version != SCHEMA_VERSION and version not in STEPS:
        raise UserError(
            f"{name} has schema {version}, and this version of Brood reads none below "
            f"{min(STEPS)}; read it with the version that wrote it"
        )


def check_resumable(version: int, *, name: str) -> None:
    """Check that a run goes on from the events of a log, which can be read.

    Raises:
        UserError: it was begun by a version whose search chose otherwise.
    """
    if not all(step.goes_on for step in _steps(version)):
        raise UserError(
            f"{name} has schema {version}: the search that began it is not this version's, which "
            "would not be where that one was; report on it as on any run, and begin a new one "
            "from its best programs with pool.sources=[FOLDER]"
        )


def upgraded(kind: str, body: str, *, version: int) -> tuple[str, str]:
    """Return an event's kind and body as this version writes them.

    Raises:
        KeyError, ValueError, TypeError: the event is not one of its schema.
    """
    steps = _steps(version)
    if not steps:
        return kind, body
    was = fields = msgspec.json.decode(body)
    for step in steps:
        kind, fields = step.event(kind, fields)
    return kind, body if fields is was else msgspec.json.encode(fields).decode()


def _steps(version: int) -> list[Step]:
    found = []
    while version in STEPS:
        found.append(STEPS[version])
        version = STEPS[version].to
    return found
