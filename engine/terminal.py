"""How a command ends at a terminal when something outside of it ends it.

Covers: Ctrl-C; an output that is lost because its reader has gone (``| head -1``), its terminal was
closed or its disk is full; streams that were closed before it began. Does not cover a run's loop,
which ends in good order (``engine.interrupt``).
"""

import contextlib
import errno
import logging
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

BAD_INPUT = 2
"""Exit code after a line that says what is wrong and what to do."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, SIGTERM or the end of the terminal."""
MODEL_LOST = 75
"""Exit code of a run whose model is lost: it goes on with ``resume=``, as sysexits' "try again"."""
UNREAD = 141
"""Exit code when nobody reads the output any more: what a shell makes of SIGPIPE."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOBODY = (errno.EPIPE, errno.EIO)  # says a pipe, a terminal
_log = logging.getLogger("brood")


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
        complain("interrupted")
        return INTERRUPTED
    except OSError as error:
        if error.errno in _NO_ROOM:
            complain(f"error: {error}; make room there")
            code = BAD_INPUT
        elif error.errno in _NOBODY and _reader_has_gone():
            code = UNREAD
        else:
            raise
        give_up_output()
        return code


@contextmanager
def going_on_without() -> Iterator[None]:
    """Go on though standard output can't be written in the block, and without it from then on."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        _log.warning("nothing more is shown, for the output can't be written: %s", error.strerror)
        give_up_output()


def give_up_output() -> None:
    """Have what is written to standard output from now on go nowhere, and what is buffered too."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def complain(line: str) -> None:
    """Write a line to standard error, if that can be written."""
    with contextlib.suppress(OSError):  # there is nobody left to tell
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def end_at_once() -> None:
    """Have Ctrl-C end the process without a word until `guarded` is called.

    For the time in which a command's modules are imported. There is nothing to clean up, and some
    libraries make a long error of a `KeyboardInterrupt` there.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # the shell may ignore it
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _reader_has_gone() -> bool:
    """Whether it was the output that broke, a pipe or a terminal, and no pipe of the command's."""
    waiting = select.poll()
    waiting.register(sys.stdout.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in waiting.poll(0))


def _open_streams() -> None:
    """Open streams that are closed, so that no other file gets their numbers."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    # Python has None for a stream that was closed when it started.
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
