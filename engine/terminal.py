"""How a command ends at a terminal when something outside of it ends it.

Covers: Ctrl-C, a reader of the output that has gone (``| head -1``), and streams that were closed
before it began. Does not cover a run's loop, which ends in good order (``engine.interrupt``).
"""

import os
import select
import signal
import sys
from collections.abc import Callable

INTERRUPTED = 130
"""Exit code after Ctrl-C or SIGTERM."""
MODEL_LOST = 75
"""Exit code of a run whose model is lost: it goes on with ``resume=``, as sysexits' "try again"."""
UNREAD = 141
"""Exit code when nobody reads the output any more: what a shell makes of SIGPIPE."""


def guarded(command: Callable[[], int]) -> int:
    """Run a command and return its exit code, or that of what ended it."""
    _open_streams()
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # see `end_at_once`
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = command()
        sys.stdout.flush()  # here, where it may fail
        return code
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        if not _reader_has_gone():
            raise
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())  # what is still in the buffer goes there at the end
        os.close(null)
        return UNREAD


def end_at_once() -> None:
    """Have Ctrl-C end the process without a word until `guarded` is called.

    For the time in which a command's modules are imported. There is nothing to clean up, and some
    libraries make a long error of a `KeyboardInterrupt` there.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # the shell may ignore it
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _reader_has_gone() -> bool:
    """Whether it was the output that broke, and no pipe of the command's own."""
    waiting = select.poll()
    waiting.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in waiting.poll(0))


def _open_streams() -> None:
    """Open streams that are closed, so that no other file gets their numbers."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    # Python has None for a stream that was closed when it started.
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
