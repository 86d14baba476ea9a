"""A run's events as they are recorded, while its loop goes on in a thread of its own.

Does not cover the loop (``engine.loop``), or what the events say (``engine.core.events``).
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue

from engine.core import Event

Tell = Callable[[Sequence[Event]], object]
"""Called after each commit, in the loop's thread, with the events that are now on disk."""

Evolve = Callable[[Callable[[], bool], Tell], object]
"""Runs a loop to its end, given what says whether to stop, and what to tell."""


class Evolution:
    """A loop in a thread, and its events; iterate over it, once."""

    def __init__(self, evolve: Evolve) -> None:
        self._evolve = evolve
        self._ending = threading.Event()
        self._told: SimpleQueue[Sequence[Event] | None] = SimpleQueue()  # None: the end
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="loop", daemon=True)

    def __iter__(self) -> Iterator[Event]:
        """Start the loop and yield each event; a caller that stops earlier ends the loop.

        Raises:
            BaseException: what ended the loop.
        """
        self._thread.start()
        try:
            while (events := self._told.get()) is not None:
                yield from events
        finally:
            self.close()
        self.raise_failure()

    def raise_failure(self) -> None:
        """Raise what ended the loop, once: whoever left the iteration has not heard of it.

        Raises:
            BaseException: what that was.
        """
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Ask the loop for an end in good order and wait for it; idempotent."""
        self._ending.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        try:
            self._evolve(self._ending.is_set, self._told.put)
        except BaseException as error:  # raised again where the events are read
            self._failure = error
        finally:
            self._told.put(None)
