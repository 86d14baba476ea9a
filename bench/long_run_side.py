"""One session of ``bench.long_run``, in a process of its own: the run, or a start of it again.

Usage: python -m bench.long_run_side REQUEST

REQUEST is JSON: {"folder", "out", "began"}, and for the run itself {"arguments", "until"}: the
settings, and after how many verdicts it stops. The figures go to the file "out".
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.control_side import StandIn, Step, TrivialPool, put
from engine import Run, config, evaluation
from engine.core import Event
from engine.timeline import TIMELINE

EVERY = 1000  # events


class NoTime(Step):
    """A step of a model that costs nothing."""

    def take(self) -> None:
        """Be done."""


class Samples:
    """What the process has used and holds, about every thousand events that are on disk."""

    def __init__(self, folder: Path) -> None:
        """``folder``: the run's."""
        self.taken: list[dict[str, float]] = []
        self._folder = folder
        self._events = 0

    def take(self, events: Sequence[Event], *, candidates: int) -> None:
        """Note that ``events`` are on disk, and sample if that makes another thousand."""
        before, self._events = self._events, self._events + len(events)
        if before // EVERY == self._events // EVERY and self.taken:
            return
        self.taken.append(
            {
                "events": self._events,
                "candidates": candidates,
                "wall": time.monotonic(),
                "cpu": time.process_time(),
                "resident": resident(),
                "descriptors": descriptors(),
                "log": sum(path.stat().st_size for path in self._folder.glob("run.db*")),
                "timeline": (self._folder / TIMELINE).stat().st_size,
            }
        )


class Pauses:
    """The seconds that the garbage collector takes."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._began = 0.0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, _: Mapping[str, int]) -> None:
        if phase == "start":
            self._began = time.perf_counter()
        else:
            self.seconds.append(time.perf_counter() - self._began)

    def figures(self) -> dict[str, float]:
        """Return the seconds in all, and the longest at once."""
        return {"seconds": round(sum(self.seconds), 2), "longest": round(max(self.seconds), 3)}


def resident() -> int:
    """Return the bytes of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def descriptors() -> int:
    """Return how many descriptors this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir()) - 1  # but for that of the listing


def made(request: Mapping[str, Any]) -> dict[str, Any]:
    """Make the run; return its samples."""
    put(TrivialPool, in_place_of=evaluation.EvaluatorPool)
    settings = config.resolve(request["arguments"])
    with Run.start(settings, load=lambda: StandIn(tokens=1, step=NoTime())) as run:
        samples, pauses = Samples(Path(request["folder"])), Pauses()
        run.evolve(
            stopped=lambda: run.history.evaluated >= request["until"],
            tell=lambda events: samples.take(events, candidates=run.history.evaluated),
        )
        return {"samples": samples.taken, "pauses": pauses.figures()}


def begun_again(request: Mapping[str, Any]) -> dict[str, Any]:
    """Resume the run until its next call is on disk; return when that was."""
    said: dict[str, float] = {}

    def note(events: Sequence[Event]) -> None:
        if not said:
            seconds = time.monotonic() - request["began"]
            said.update(seconds=seconds, cpu=time.process_time(), resident=resident())

    with Run.resume(request["folder"], load=lambda: StandIn(tokens=1, step=NoTime())) as run:
        run.evolve(stopped=lambda: bool(said), tell=note)
    return said


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    figures = made(asked) if "until" in asked else begun_again(asked)
    Path(asked["out"]).write_text(json.dumps(figures), encoding="utf-8")
