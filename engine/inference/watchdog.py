"""Noticing that a step of the engine hangs.

The engine runs in this process, in a thread, and Python can't interrupt what a thread does outside
of Python. So another thread looks at the step from time to time. It counts the seconds between its
own looks, each look for a second at most: a process that was suspended in the middle of a step has
not waited, however long that was, and a clock that jumps says nothing here.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST_LOOK = 1.0
"""Seconds between two looks that count, at most; who looks less often takes longer to notice."""


class Watchdog:
    """Watches the steps that one thread makes, for another one that looks."""

    def __init__(self, seconds: float) -> None:
        """Begin without a step.

        Args:
            seconds: how long a step may last.
        """
        self._seconds = seconds
        self._changes = 0  # of what the thread does: odd while it is in a step
        self._seen = 0
        self._looked = time.monotonic()
        self._lasted = 0.0

    @contextmanager
    def step(self) -> Iterator[None]:
        """Make a step within the block."""
        self._changes += 1
        try:
            yield
        finally:
            self._changes += 1

    @property
    def is_in_step(self) -> bool:
        """Whether a step is under way."""
        return self._changes % 2 == 1

    def hangs(self) -> bool:
        """Look, in the other thread; return whether the step under way has lasted too long."""
        now, changes = time.monotonic(), self._changes
        since, self._looked = now - self._looked, now
        if changes != self._seen or changes % 2 == 0:
            self._seen, self._lasted = changes, 0.0
        else:
            self._lasted += min(since, LONGEST_LOOK)
        return self._lasted > self._seconds
