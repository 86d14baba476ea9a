"""Feeding targets in processes that may die or hang, and going on behind the input that did it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.fuzz.worker import Progress

_LOOK_SECONDS = 0.1
_START_SECONDS = 600.0  # it imports its reader, which may be torch
_MOST_LOST = 20  # processes that a target may lose


@dataclass(kw_only=True)
class Found:
    """What became of a target's inputs.

    Attributes:
        inputs: how many were read.
        accepted: taken, and for what they are.
        refused: with the error that is the reader's to raise.
        crashes: with another exception, or the death of the process.
        hangs: not read within `hunt`'s seconds; the process was killed.
        wrong: taken for something else.
        slowest_seconds: of an input that was read.
        seconds: wall seconds for all of them.
        findings: of each crash, hang and wrong one, the input's number and what was said.
    """

    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    crashes: int = 0
    hangs: int = 0
    wrong: int = 0
    slowest_seconds: float = 0.0
    seconds: float = 0.0
    findings: list[dict[str, Any]] = field(default_factory=list)


def hunt(target: str, *, seed: int, first: int, inputs: int, hang_seconds: float) -> Found:
    """Have a target read inputs, from number ``first`` on.

    Args:
        target: its name.
        seed: of the inputs.
        first: number of the first one.
        inputs: how many.
        hang_seconds: that one may take.

    Raises:
        RuntimeError: the target can't be made, or loses one process after the other.
    """
    found, began, lost = Found(), time.monotonic(), 0
    last = first + inputs
    with tempfile.TemporaryDirectory(prefix="brood-fuzz-") as place:
        folder = Path(place)
        noted, counted = folder / "findings", folder / "progress"
        noted.touch()
        progress = Progress(counted)
        while first < last:
            own = folder / f"{first}"
            own.mkdir()
            ended = _watched(
                [target, str(seed), str(first), str(last), str(own), str(counted), str(noted)],
                progress=progress,
                log=folder / "log",
                hang_seconds=hang_seconds,
            )
            if progress.load().at >= last and ended == "0":
                break
            if progress.began <= lost:
                raise RuntimeError(f"{target}: {ended}: {(folder / 'log').read_text()[-1000:]}")
            if (lost := lost + 1) > _MOST_LOST:
                raise RuntimeError(f"{target} has lost {lost} processes; see {ended}")
            found.hangs += ended == "hang"
            found.crashes += ended != "hang"
            what = {"target": target, "input": progress.at, "what": ended, "said": ""}
            found.findings.append(what)
            first = progress.at + 1
        found.findings += [json.loads(line) for line in noted.read_text().splitlines()]
    found.accepted, found.refused = progress.taken, progress.refused
    found.crashes, found.wrong = found.crashes + progress.crashes, progress.wrong
    found.slowest_seconds = progress.slowest
    found.inputs = found.accepted + found.refused + found.crashes + found.hangs + found.wrong
    found.seconds = time.monotonic() - began
    return found


def _watched(arguments: list[str], *, progress: Progress, log: Path, hang_seconds: float) -> str:
    """Run a worker to its end; return its exit code as text, or ``hang`` if it had to be killed."""
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-m", "bench.fuzz.worker", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    began, at, since = progress.began, -1, time.monotonic()
    try:
        while process.poll() is None:
            time.sleep(_LOOK_SECONDS)
            is_reading = progress.load().began > began
            if is_reading and progress.at != at:
                at, since = progress.at, time.monotonic()
            if time.monotonic() - since > (hang_seconds if is_reading else _START_SECONDS):
                return "hang"
    finally:
        process.kill()
        process.wait()
    return f"{process.returncode}"
