"""Killing processes together with all that they started.

A process group is not enough: a candidate may give its children sessions of their own. Workers
adopt the orphans below them (``_native.adopt_orphans``), so that all of a candidate's processes
stay descendants of the worker, and are found in ``/proc``.

Does not cover: descendants of a worker that was itself killed from outside; its own child
dies with it, but what that child had forked does not.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

_PAUSE_SECONDS = 0.001
_ROUNDS = 5000


def descendants(root: int) -> list[int]:
    """Return the ids of all living processes below process ``root``, zombies left out."""
    children: dict[int, list[int]] = {}
    zombies = set()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        with contextlib.suppress(OSError):  # it ended since the folder was listed
            # "pid (name) state ppid ..."; the name may hold spaces and parentheses
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            children.setdefault(int(parent), []).append(int(folder.name))
            if state == "Z":
                zombies.add(int(folder.name))
    found = []
    open_ends = [root]
    while open_ends:
        below = children.get(open_ends.pop(), [])
        open_ends += below
        found += [pid for pid in below if pid not in zombies]
    return found


def kill(pid: int) -> None:
    """Send SIGKILL to a process that may have ended already."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def kill_and_reap_descendants() -> None:
    """Kill and reap every process below this one; needs ``adopt_orphans`` to find them all.

    Raises:
        TimeoutError: processes are still there after seconds of killing.
    """
    for _ in range(_ROUNDS):
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            return
        for pid in descendants(os.getpid()):
            kill(pid)
        time.sleep(_PAUSE_SECONDS)
    raise TimeoutError("a candidate's processes can't be killed")


def kill_tree(root: int) -> None:
    """Kill a child of this process and everything below it; the caller reaps the child."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(root, signal.SIGSTOP)  # so that it starts nothing new meanwhile
    for _ in range(_ROUNDS):
        below = descendants(root)
        if not below:
            break
        for pid in below:
            kill(pid)
        time.sleep(_PAUSE_SECONDS)
    kill(root)
