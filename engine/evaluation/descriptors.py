"""How many files a process may have open: enough for the evaluators, or a line that says so."""

import resource

from engine.core import UserError

LEAST = 256
"""Open files with which evaluators work; a sandbox puts its own at numbers from 64 on."""
WANTED = 1024
"""As many as a run asks for, where it may."""


def allowed_descriptors() -> int:
    """Return how many this process has, or may allow itself up to `WANTED`."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(now, WANTED if most == resource.RLIM_INFINITY else min(WANTED, most))


def allow_descriptors() -> None:
    """Let this process and those that it starts have as many files open as it may allow itself.

    Raises:
        UserError: that is too few.
    """
    allowed, (now, most) = allowed_descriptors(), resource.getrlimit(resource.RLIMIT_NOFILE)
    if now < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))
    if allowed < LEAST:
        raise UserError(
            f"a process may have {allowed} files open here, and evaluators need {LEAST}; raise the "
            "limit (ulimit -n)"
        )
