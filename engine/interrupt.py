"""Ctrl-C, SIGTERM and the end of the terminal (SIGHUP): each asks a run to end in good order.

Covers: what a signal does while a run begins, and while its loop goes on. Does not cover a sweep,
whose runs get them (``engine.run``).

One request may arrive as several signals: `timeout`, a service manager or a batch system signals
each process of a group, and a sweep hands signals on to its run. So signals that come soon after
the first one count as the same request.
"""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_ONE_REQUEST_SECONDS = 1.0


@contextmanager
def handled(handler: Callable[[int, object], object], *signals: int) -> Iterator[None]:
    """Have ``handler`` called at each of ``signals`` for the length of a ``with`` block.

    Not at SIGHUP where that is ignored: whoever began with ``nohup`` wants to outlive the terminal.
    """
    heard = [each for each in signals if each != signal.SIGHUP or not _ignores_hangup()]
    before = {each: signal.signal(each, handler) for each in heard}
    try:
        yield
    finally:
        for each, former in before.items():
            signal.signal(each, former)


@contextmanager
def terminable() -> Iterator[None]:
    """Have SIGTERM and SIGHUP raise `KeyboardInterrupt`, as Ctrl-C does, for a ``with`` block.

    Otherwise they would end the process at once, and leave its files and processes behind.
    """
    requests = _Requests()

    def interrupt(number: int, frame: object) -> None:
        if requests.hear():
            raise KeyboardInterrupt

    with handled(interrupt, signal.SIGTERM, signal.SIGHUP):
        yield


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether to stop; a second request raises `KeyboardInterrupt`."""
    requests = _Requests()

    def ask(number: int, frame: object) -> None:
        if requests.hear() and requests.count > 1:
            raise KeyboardInterrupt

    with handled(ask, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        yield lambda: requests.count > 0


def _ignores_hangup() -> bool:
    return signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


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
