"""Ctrl-C and SIGTERM, which ask a run for the same: to end in good order.

Covers: what a signal does while a run begins, and while its loop goes on. Does not cover a sweep,
whose runs get them (``engine.sweep``).

One request may arrive as several signals: `timeout`, a service manager or a batch system tells each
process of a group, and a sweep hands on to its run what it was told. So those that come soon after
the first one say nothing new.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_ONE_REQUEST_SECONDS = 1.0


@contextmanager
def terminable() -> Iterator[None]:
    """Have SIGTERM raise `KeyboardInterrupt`, as Ctrl-C does, for the length of a ``with`` block.

    It would end the process at once otherwise, and leave its files and processes behind.
    """
    requests = _Requests()

    def interrupt(number: int, frame: object) -> None:
        if requests.hear():
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Yield what says whether to stop; a second request raises `KeyboardInterrupt`."""
    requests = _Requests()

    def ask(number: int, frame: object) -> None:
        if requests.hear() and requests.count > 1:
            raise KeyboardInterrupt

    before = {each: signal.signal(each, ask) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: requests.count > 0
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class _Requests:
    """Counts requests, each of which may be several signals."""

    def __init__(self) -> None:
        self.count = 0
        self._last = 0.0

    def hear(self) -> bool:
        """Take in a signal; return whether it is a request of its own."""
        now = time.monotonic()
        is_new = self.count == 0 or now - self._last > _ONE_REQUEST_SECONDS
        if is_new:
            self.count, self._last = self.count + 1, now
        return is_new
