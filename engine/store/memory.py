"""A log that is kept in memory, for runs that nobody goes on with: benchmarks and tests."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from engine.store.events import Event
from engine.store.log import Recorded


class MemoryLog:
    """The face of `engine.store.EventLog`, with nothing behind it that outlives the process."""

    session = 0

    def __init__(self, events: Iterable[Event]) -> None:
        """Begin with some events."""
        self._events = [Recorded(session=0, elapsed=0.0, event=event) for event in events]
        self._began = time.monotonic()

    def append(self, event: Event) -> Recorded:
        """Add an event."""
        elapsed = time.monotonic() - self._began
        self._events.append(Recorded(session=0, elapsed=elapsed, event=event))
        return self._events[-1]

    def commit(self) -> None:
        """Do nothing."""

    def events(self) -> Iterator[Recorded]:
        """Yield all events in the order in which they were added."""
        return iter(self._events)
