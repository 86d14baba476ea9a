"""The timeline: who was busy when, as a trace in the run's folder.

Covers: recording spans from several threads at about a microsecond each, reading them back, and
going on with the file of a run that was killed. Does not cover what they mean for the run
(``engine.report.clock``).

The file is a Chrome trace that ``chrome://tracing`` and https://ui.perfetto.dev open, also while
the run goes on: the JSON Array Format of Google's "Trace Event Format" (document
1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU on docs.google.com), one event a line. That format
lets the closing bracket be left out, so the file only ever grows. A kill loses the spans that were
open, and about a second of what was recorded last.
"""

import enum
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Self

import msgspec

from engine.core import UserError

TIMELINE = "timeline.json"
"""Name of the file in a run's folder."""

MODEL = 1
"""Thread of the model's events."""

EVALUATORS = 2
"""Thread of evaluator 0; evaluator n has thread EVALUATORS + n."""

FILLERS = 1 << 16
"""Thread of what fills evaluator 0 while it has nothing to do; likewise."""

OPENED = "session opened"
"""Name of the event that begins a session."""

_HEAD, _END = b"[\n", b",\n"  # of the file, of each line
_log = logging.getLogger(__name__)

Microseconds = Annotated[int, msgspec.Meta(ge=0)]
Args = dict[str, int | str]


class Activity(enum.StrEnum):
    """What a track can do."""

    STEP = "step"  # the engine's step: prefill and decode
    AWAIT_EVALUATIONS = "await evaluations"  # nothing to decode until verdicts are in
    AWAIT_PARENT = "await parent"  # nothing to decode until a parent is chosen, its prompt composed
    AWAIT_IMPLEMENTER = "await implementer"  # nothing to decode until an endpoint answers
    EVALUATE = "evaluate"  # a candidate is run and scored
    FILL = "fill"  # a program that no model made is run and scored


class Event(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A line of the file.

    Attributes:
        ph: a span ("X"), a session's begin or end ("i") or a thread's name ("M").
        name: the `Activity` of a span, or what else happened.
        pid: always 1.
        tid: `MODEL`, or that of an evaluator or a filler.
        ts: when, in us of an axis that begins with the run's first session; the time between two
            sessions is left out.
        dur: of a span, in us.
        args: the iteration that a span is for, or a thread's name.
    """

    ph: str
    name: str
    pid: int
    tid: int
    ts: Microseconds
    dur: Microseconds = 0
    args: Args = {}


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Event).decode


class Track:
    """One row of the timeline, which does one thing at a time; made by `Timeline`.

    Methods may be called from any thread. What overlaps a span that was recorded before is cut off.
    """

    def __init__(self, timeline: "Timeline", tid: int) -> None:
        self._timeline = timeline
        self._tid = tid
        self._recorded = timeline.now()  # no later span begins before this
        self._doing: tuple[int, Activity, Args] | None = None  # since when, what

    def begin(self, activity: Activity, *, iteration: int | None = None) -> Self:
        """Do ``activity`` from now on, instead of what was done until now.

        As a context manager, it ends with the block.
        """
        with self._timeline.lock:
            args: Args = {} if iteration is None else {"iteration": iteration}
            self._doing = self._finish(), activity, args
        return self

    def end(self) -> None:
        """Do nothing from now on; nothing happens if nothing was done."""
        with self._timeline.lock:
            self._finish()

    def add(self, activity: Activity, seconds: float) -> None:
        """Record that ``activity`` was done for ``seconds`` until now."""
        with self._timeline.lock:
            now = self._timeline.now()
            self._span(now - int(seconds * 1e6), now, activity, {})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def _finish(self) -> int:
        """Record what was done until now, and return the time; the lock is held."""
        now = self._timeline.now()
        if self._doing is not None:
            since, activity, args = self._doing
            self._span(since, now, activity, args)
            self._doing = None
        return now

    def _span(self, start: int, end: int, activity: str, args: Args) -> None:
        # Viewers draw the slices of a thread only if they nest or follow each other.
        start = max(start, self._recorded)
        if start < end:
            self._recorded = end
            event = Event("X", activity, 1, self._tid, start, end - start, args)
            self._timeline.unwritten.append(event)


class Timeline:
    """Records one session of a run; a context manager.

    Every method may be called from any thread, and none waits for the disk: a thread of its own
    writes the file once in ``flush_seconds``. If the file can't be written any more, that is logged
    once and the rest is not recorded: a run doesn't end for its timeline.

    Attributes:
        model: the model's track.
        lock: of all that is recorded; held for a microsecond.
        unwritten: what was recorded last.
    """

    def __init__(
        self,
        path: Path,
        *,
        flush_seconds: float = 1.0,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Begin a session at the end of the file ``path``, which is made if there is none.

        What a death cut off in the middle of a line is removed first.

        Args:
            path: the file; by custom `TIMELINE` in the run's folder.
            flush_seconds: between two writes.
            clock: ns from any origin, never going back.

        Raises:
            UserError: the file can't be read or written.
        """
        try:
            began = _mend(path)
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise UserError(f"timeline {path} can't be written: {error.strerror}") from error
        self._clock = clock
        self._origin = clock() - began * 1000
        self.lock = threading.Lock()
        self.unwritten: list[Event] = []
        self._writable = True
        self._closing = threading.Event()
        self._put("i", OPENED, {})
        self.model = self._track(MODEL, "model")
        self._thread = threading.Thread(
            target=self._write_regularly, args=(flush_seconds,), name="timeline", daemon=True
        )
        self._thread.start()

    def now(self) -> int:
        """Return the time on the timeline, in us."""
        return (self._clock() - self._origin) // 1000

    def evaluator(self, number: int) -> Track:
        """Return a track for evaluator ``number``, which counts from 0; ask once for each."""
        return self._track(EVALUATORS + number, f"evaluator {number}")

    def filler(self, number: int) -> Track:
        """Return a track for what fills evaluator ``number``; ask once for each."""
        return self._track(FILLERS + number, f"filler {number}")

    def close(self) -> None:
        """End open spans and the session; idempotent. What comes later is not recorded."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._thread.join()
        self.model.end()
        self._put("i", "session closed", {})
        self._write()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _track(self, tid: int, name: str) -> Track:
        self._put("M", "thread_name", {"name": name}, tid)
        return Track(self, tid)

    def _put(self, ph: str, name: str, args: Args, tid: int = MODEL) -> None:
        with self.lock:
            self.unwritten.append(Event(ph, name, 1, tid, self.now(), args=args))

    def _write_regularly(self, seconds: float) -> None:
        while not self._closing.wait(seconds):
            self._write()

    def _write(self) -> None:
        """Write what was recorded as whole lines, or log why not and write none again."""
        with self.lock:
            events, self.unwritten = self.unwritten, []
        lines = b"".join([_encode(event) + _END for event in events])
        try:
            while lines and self._writable:
                lines = lines[self._file.write(lines) :]  # it may take less than it is given
        except OSError as error:
            self._writable = False
            _log.warning("the timeline ends here: %s can't be written: %s", self._file.name, error)


def read_events(path: Path) -> Iterator[Event]:
    """Yield what a file holds, in the order in which it was recorded: a span at its end.

    The file may be one that is still written, or one that a death cut off; it is read as far as it
    is sound.

    Raises:
        UserError: the file can't be read.
    """
    try:
        for event, _ in _sound_lines(path):
            yield event
    except OSError as error:
        raise UserError(f"timeline {path} can't be read: {error.strerror}") from error


def _sound_lines(path: Path) -> Iterator[tuple[Event, int]]:
    """Yield the events before the first unsound line, each with the place where its line ends.

    After a power cut, a file may hold anything where lines were to be.
    """
    with path.open("rb") as file:
        end = len(file.readline())
        for line in file:
            if not line.endswith(_END):
                return
            try:
                event = _decode(line.removesuffix(_END))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                return
            end += len(line)
            yield event, end


def _mend(path: Path) -> int:
    """Cut off what follows the last sound line; return the time at which the next session begins.

    That is the end of the last event, in us, and 0 for a file that is made here.
    """
    last, size = 0, 0
    if path.exists():
        for event, end in _sound_lines(path):
            last, size = max(last, event.ts + event.dur), end
        os.truncate(path, size)
    if not size:
        path.write_bytes(_HEAD)
    return last
