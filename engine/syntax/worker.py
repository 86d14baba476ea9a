"""``python -m engine.syntax.worker``: runs the functions that `engine.syntax.workers` sends.

A message is a pickle with its length before it. Standard input brings sequences of functions
without arguments; standard output takes, for each sequence, the list of what they returned or
raised.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import signal
import sys
from collections.abc import Callable
from typing import Any

from engine.syntax.workers import FRAME

_PR_SET_PDEATHSIG = 1  # of linux/prctl.h
_COLLECT_AFTER = 100_000  # objects: trees are large, and hold no cycles


def main() -> None:
    """Work until standard input ends."""
    # A run that is killed leaves nothing behind: a long piece of work does not look at its input.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group of processes
    gc.set_threshold(_COLLECT_AFTER)
    source, target = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed by mistake is no message
    while len(head := source.read(FRAME.size)) == FRAME.size:
        works = pickle.loads(source.read(*FRAME.unpack(head)))
        answer = pickle.dumps([_done(work) for work in works], pickle.HIGHEST_PROTOCOL)
        target.write(FRAME.pack(len(answer)) + answer)
        target.flush()


def _done(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return work(), None
    except Exception as error:  # raised again where the result is awaited
        return None, error


if __name__ == "__main__":
    main()
