"""Question: what does it cost to record a span on the timeline?

Method: in each round, a thread records ``spans`` spans, either live (`begin` and `end`, as a
context manager, with two readings of the clock) or afterwards (`add`); then two threads do so at
once, each on its own track, and the time is divided by the spans of both. What the timeline's own
thread writes meanwhile to a file in the temporary folder is in it. An empty loop's time is not
taken off. Median and range over the rounds, in ns per span: ``wall``, and ``cpu``, which says more
where others use the machine.

Usage: python -m bench.timeline [rounds=7] [spans=50000]
The last line printed is JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.figures import spread
from bench.options import read_options, run_as_command, whole_number
from engine.timeline import TIMELINE, Activity, Timeline, Track

_DEFAULTS = {"rounds": "7", "spans": "50000"}


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, _DEFAULTS, usage=__doc__ or "")
    rounds, spans = whole_number(options, "rounds"), whole_number(options, "spans")
    figures = {}
    for name, record in (("live", _live), ("afterwards", _afterwards)):
        for threads in (1, 2):
            seen = [_ns_per_span(record, threads, spans) for _ in range(rounds)]
            figures[f"{name}_{threads}_thread"] = {
                clock: spread(each, digits=0)
                for clock, each in zip(("wall", "cpu"), zip(*seen, strict=True), strict=True)
            }
    sys.stdout.write(json.dumps({**options, "ns_per_span": figures}) + "\n")


def _ns_per_span(
    record: Callable[[Track, int], None], threads: int, spans: int
) -> tuple[float, float]:
    """Return the wall and the CPU ns of the process, per span."""
    with tempfile.TemporaryDirectory() as folder, Timeline(Path(folder) / TIMELINE) as timeline:
        tracks = [timeline.evaluator(index) for index in range(threads)]
        recorders = [threading.Thread(target=record, args=(track, spans)) for track in tracks]
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        for recorder in recorders:
            recorder.start()
        for recorder in recorders:
            recorder.join()
        wall, cpu = time.perf_counter_ns() - wall, time.process_time_ns() - cpu
        return wall / (spans * threads), cpu / (spans * threads)


def _live(track: Track, spans: int) -> None:
    for iteration in range(spans):
        with track.begin(Activity.EVALUATE, iteration=iteration):
            pass


def _afterwards(track: Track, spans: int) -> None:
    for _ in range(spans):
        track.add(Activity.EVALUATE, 1e-6)


if __name__ == "__main__":
    run_as_command(main)
