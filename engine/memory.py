"""The memory that this process may have: the machine's, or what a container leaves of it."""

from collections.abc import Mapping
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
"""The process's own control group (version 2), as a container sees it."""


def total_bytes() -> int:
    """Return how much there is."""
    total = _meminfo()["MemTotal"]
    return min(total, _number(CGROUP / "memory.max", default=total))


def available_bytes() -> int:
    """Return how much can be had now without anything being swapped out."""
    free = _meminfo()["MemAvailable"]
    used = _used()
    return max(0, min(free, _number(CGROUP / "memory.max", default=free + used) - used))


def _used() -> int:
    """Return what the group uses, without the cache of files that lie idle: it goes when needed."""
    used = _number(CGROUP / "memory.current", default=0)
    if not used:
        return 0
    fields = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
    return max(0, used - int(fields.get("inactive_file", 0)))


def _meminfo() -> Mapping[str, int]:
    """Return the kernel's figures in bytes; it says them in KiB."""
    lines = MEMINFO.read_text().splitlines()
    fields = [line.replace(":", "").split() for line in lines]
    return {name: int(value) * 1024 for name, value, *unit in fields if unit == ["kB"]}


def _number(path: Path, *, default: int) -> int:
    """Return the number in a file; ``default`` where there is no file, or ``max`` in it."""
    try:
        text = path.read_text().strip()
    except OSError:
        return default
    return int(text) if text.isdecimal() else default
