"""How many files a process may have open: enough for the evaluators, or a line that says so."""

import resource

from engine.core import UserError

LEAST = 256
"""Open files with which evaluators work; a sandbox puts its own at numbers from 64 on."""
_WANTED = 1024


def allow_descriptors() -> None:
    """Let this process and those that it starts have as many files open as it may allow itself.

    Raises:
        UserError: that is too few.
    """
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if now < _WANTED:
        now = _WANTED if most == resource.RLIM_INFINITY else min(_WANTED, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (now, most))
    if now < LEAST:
        raise UserError(
            f"a process may have {now} files open here, and evaluators need {LEAST}; raise the "
            "limit (ulimit -n)"
        )
