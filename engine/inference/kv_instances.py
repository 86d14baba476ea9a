"""The names under which engines register at a server: it sees by them which of them have died."""

import os
import secrets
from pathlib import Path

_RANDOM_BITS = 40  # a process number has at most 22, and LMCache takes 63


def new_instance() -> int:
    """Return a name for an engine of this process."""
    return os.getpid() << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)


def is_alive(instance: int) -> bool:
    """Whether the process of an engine on this machine is there."""
    return Path(f"/proc/{instance >> _RANDOM_BITS}").exists()
