"""How much of the machine's memory is in use."""

from __future__ import annotations

from pathlib import Path

_MEMINFO = Path("/proc/meminfo")


def memory_usage() -> float:
    """Return the share of the machine's memory that is not available, from 0 to 1."""
    kilobytes = dict(line.split()[:2] for line in _MEMINFO.read_text().splitlines())
    return 1 - int(kilobytes["MemAvailable:"]) / int(kilobytes["MemTotal:"])
