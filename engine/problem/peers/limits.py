"""What one evaluation may use, from wherever a folder says so."""

import re
from pathlib import Path

from engine.core import Limits, UserError
from engine.core.problem import MOST_MEMORY_MB, MOST_SECONDS
from engine.problem.declaration import read
from engine.problem.peers.config import Config
from engine.problem.peers.recognise import PeerFolder, parsed
from engine.problem.peers.script import texts
from engine.problem.places import place
from engine.section import shown

SECONDS = 300.0
"""The time limit of a folder that names none: OpenEvolve's."""
MEMORY_MB = 4096.0
"""The memory limit of a folder that names none."""

_DURATION = re.compile(r"(?:(\d+):)?(\d+):(\d+)")


def limits(peer: PeerFolder, config: Config) -> Limits:
    """Return the configuration's limits, else a script's, else the usual ones.

    Raises:
        UserError: one of them is out of range, or a script does not parse.
    """
    most = MOST_MEMORY_MB
    memory = config.positive("evaluator", "memory_limit_mb", least=1, below=most) or MEMORY_MB
    seconds = config.positive("evaluator", "timeout", below=MOST_SECONDS)
    if seconds is None and peer.contract == "shinka":
        for path in peer.scripts:
            seconds = _seconds(path) or seconds
    return Limits(seconds=seconds or SECONDS, memory_bytes=int(memory) << 20)


def _seconds(path: Path) -> float | None:
    """Return the duration that a script calls ``time``; None if it has none."""
    text = read(path)
    duration = texts(parsed(path, text)).get("time", "")
    found = _DURATION.fullmatch(duration)
    if found is None:
        return None
    hours, minutes, rest = (float(part or 0) for part in found.groups())  # an int may be too long
    seconds = 3600 * hours + 60 * minutes + rest
    if not 0 < seconds < MOST_SECONDS:
        numbered = enumerate(text.splitlines(), start=1)
        line = next((number for number, each in numbered if duration in each), None)
        raise UserError(
            f"{place(path, line)}: time is {shown(duration)}; it must be HOURS:MINUTES:SECONDS, "
            f"above 0 and below {MOST_SECONDS:,.0f} s"
        )
    return seconds
