"""A timeline as a Chrome trace, to look at.

Covers: the trace of a run's timeline as ``chrome://tracing`` and https://ui.perfetto.dev read it.
Reads the file once in order, in memory that does not grow with the run. Does not cover the shares
of the time (``engine.report.clock``), which it prints as well.

The format is the JSON Object Format of Google's "Trace Event Format" (document
1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU on docs.google.com): complete events ("X"), counter
events ("C"), instant events ("i") and metadata events ("M"), times in microseconds.

Usage: python -m engine.report.trace RUN_FOLDER    (also of a run that goes on, or was killed)
writes RUN_FOLDER/trace.json and prints the shares as JSON.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.core import UserError
from engine.report.clock import clock_use
from engine.report.files import whole_file
from engine.timeline_file import (
    MODEL,
    TIMELINE,
    Activity,
    Kind,
    Queue,
    Records,
    read_timeline,
)

TRACE = "trace.json"
"""Name of the exported file in a run's folder."""

_PID = 1


def write_trace(timeline: Path, trace: Path) -> None:
    """Write the Chrome trace of a timeline's file, whole or not at all; about 100 bytes a span.

    Raises:
        UserError: a file can't be read or written.
    """
    with whole_file(trace) as output:
        output.write('{"displayTimeUnit":"ms","traceEvents":[\n')
        output.write(_process_name())
        for records in read_timeline(timeline):
            output.writelines(f",\n{event}" for event in _events(records))
        output.write("\n]}\n")


def main(arguments: Sequence[str]) -> int:
    """Export and summarise the timeline of the run's folder that ``arguments`` name."""
    try:
        if len(arguments) != 1:
            raise UserError("give one run's folder: python -m engine.report.trace RUN_FOLDER")
        folder = Path(arguments[0])
        use = clock_use(folder / TIMELINE)
        write_trace(folder / TIMELINE, folder / TRACE)
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    figures = None if use is None else dataclasses.asdict(use)
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    return 0


def _events(records: Records) -> Iterator[str]:
    """Yield each record as one JSON object; tracks of later sessions are named again."""
    for start, end, number, track, kind, what in records.tolist():
        if kind == Kind.SPAN:
            yield _span(start, end, number, track, Activity(what))
        elif kind == Kind.COUNT:
            yield _count(start, number, Queue(what))
        elif kind == Kind.TRACK:
            yield _thread_name(track)
        else:
            yield _moment(start, Kind(kind))


def _span(start: int, end: int, iteration: int, track: int, activity: Activity) -> str:
    # Section "Complete Events". Slices of a thread are drawn only if they nest or follow each other
    # (perfetto.dev/docs/faq), which `Track` sees to.
    arguments = f',"args":{{"iteration":{iteration}}}' if iteration >= 0 else ""
    return (
        f'{{"ph":"X","name":"{_label(activity)}","cat":"{_track_name(track)}","pid":{_PID},'
        f'"tid":{_tid(track)},"ts":{_microseconds(start)},"dur":{_microseconds(end - start)}'
        f"{arguments}}}"
    )


def _count(start: int, length: int, queue: Queue) -> str:
    # Section "Counter Events"; a counter belongs to a process, not to a thread.
    return (
        f'{{"ph":"C","name":"{_label(queue)} in flight","pid":{_PID},'
        f'"ts":{_microseconds(start)},"args":{{"{_label(queue)}":{length}}}}}'
    )


def _thread_name(track: int) -> str:
    # Section "Metadata Events".
    return (
        f'{{"ph":"M","name":"thread_name","pid":{_PID},"tid":{_tid(track)},'
        f'"args":{{"name":"{_track_name(track)}"}}}}'
    )


def _process_name() -> str:
    # Section "Metadata Events".
    return f'{{"ph":"M","name":"process_name","pid":{_PID},"args":{{"name":"brood"}}}}'


def _moment(start: int, kind: Kind) -> str:
    # Section "Instant Events"; scope "g" draws it over all tracks.
    return (
        f'{{"ph":"i","s":"g","name":"session {_label(kind)}","cat":"session","pid":{_PID},'
        f'"tid":{_tid(MODEL)},"ts":{_microseconds(start)}}}'
    )


def _tid(track: int) -> int:
    return track + 1  # viewers take thread 0 for the kernel's idle one


def _track_name(track: int) -> str:
    return "model" if track == MODEL else f"evaluator {track - 1}"


def _label(code: Activity | Queue | Kind) -> str:
    return code.name.lower().replace("_", " ")


def _microseconds(ns: int) -> str:
    """Return ``ns`` in microseconds, exactly; a float could not tell them apart in a long run."""
    return f"{ns // 1000}.{ns % 1000:03}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
