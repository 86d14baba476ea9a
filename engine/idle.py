"""Giving way: a process that runs only where nothing else wants its core."""

import os
import time
from pathlib import Path

_WEAKEST = "19"  # niceness of a session
_TRIES = 20


def give_way(process: int = 0) -> None:
    """Let a process, and those that it starts, have a core only when nobody else wants it.

    Where the kernel groups processes by session (``sched_autogroup_enabled``), a session's own
    weight counts first. So the process should have begun one.

    Args:
        process: its number; 0 for the one that calls.
    """
    os.sched_setscheduler(process, os.SCHED_IDLE, os.sched_param(0))
    weight = Path(f"/proc/{process or 'self'}/autogroup")
    for _ in range(_TRIES):
        try:
            weight.write_text(_WEAKEST)
            return
        except BlockingIOError:  # for all but root the kernel takes one in a tenth of a second
            time.sleep(0.1)
        except OSError:  # no such file: it does not group them
            return
