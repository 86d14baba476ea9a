"""The timeline: who was busy when, and who waited for what, in a file of the run's folder.

Covers: recording spans and queue lengths from several threads, at about a microsecond each and in
bounded memory, and going on with the file of a run that was killed. Does not cover the file's
format (``engine.timeline_file``) or what the records mean for the run (``engine.report.trace``).

Records reach the file when the buffer is full and at each flush. A kill loses what came after the
last flush, no more: a span that is open at a flush is written up to that moment, so one that lasts
longer is a row of pieces that touch.
"""

from __future__ import annotations

import logging
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from engine.core import UserError
from engine.timeline_file import MODEL, RECORD, Activity, Kind, Queue, mend

_pack = struct.Struct("<qqiHBB").pack
_SPAN, _NO_ITERATION = int(Kind.SPAN), -1
_MOST_BUFFERED = 4096 * RECORD.itemsize  # bytes
_log = logging.getLogger(__name__)


class Track:
    """One row of the timeline, which does one thing at a time; made by `Timeline`.

    Methods may be called from any thread, though a track whose spans overlap makes little sense:
    what overlaps a span that was recorded before is cut off.
    """

    def __init__(self, timeline: Timeline, number: int, began: int) -> None:
        self._timeline = timeline
        self._lock = timeline._lock
        self._now = timeline.now
        self._put = timeline._put
        self.number = number
        self._recorded = began  # ns; nothing is recorded twice before this
        self._doing = 0  # 0: nothing
        self._iteration = _NO_ITERATION
        self._since = 0

    def begin(self, activity: Activity, *, iteration: int = _NO_ITERATION) -> Self:
        """Do ``activity`` from now on, instead of what was done until now.

        As a context manager, it ends with the block.
        """
        with self._lock:
            now = self._now()
            self._cut(now)
            self._doing, self._iteration, self._since = activity, iteration, now
        self._timeline._relieve()
        return self

    def end(self) -> None:
        """Do nothing from now on; nothing happens if nothing was done."""
        with self._lock:
            self._cut(self._now())
            self._doing = 0
        self._timeline._relieve()

    def add(
        self, activity: Activity, *, start: int, end: int, iteration: int = _NO_ITERATION
    ) -> None:
        """Record a span that is over, in ns as `Timeline.now` returns them.

        Raises:
            ValueError: it ends before it starts.
        """
        if end < start:
            raise ValueError(f"Expected an end at {start} ns or later but it is {end}")
        with self._lock:
            self._span(activity, start, end, iteration)
        self._timeline._relieve()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def _cut(self, now: int) -> None:
        """Record what is not yet recorded of the open span, up to ``now``; the lock is held."""
        if self._doing:
            self._span(self._doing, self._since, now, self._iteration)

    def _span(self, activity: int, start: int, end: int, iteration: int) -> None:
        if start < self._recorded:
            start = self._recorded
        if start < end:
            self._recorded = end
            self._put(_pack(start, end, iteration, self.number, _SPAN, activity))


class Timeline:
    """Records one session of a run; a context manager.

    Every method may be called from any thread. A thread of its own writes the file once in
    ``flush_seconds``. If the file can't be written any more, that is logged once and the rest is
    not recorded: a run doesn't end for its timeline.
    """

    def __init__(
        self,
        path: Path,
        *,
        flush_seconds: float = 1.0,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Begin a session at the end of the file ``path``, which is made if there is none.

        What a death cut off in the middle of a record is removed first.

        Args:
            path: the file; by custom `TIMELINE` in the run's folder.
            flush_seconds: the most that a death loses.
            clock: ns from any origin, never going back.

        Raises:
            UserError: the file can't be read or written.
        """
        try:
            began = mend(path)
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise UserError(f"timeline {path} can't be written: {error.strerror}") from error
        self._clock = clock
        self._origin = clock() - began
        self._began = began
        self._lock = threading.Lock()  # of all that is recorded; held for a microsecond
        self._writing = threading.Lock()  # of the file
        self._buffer = bytearray()
        self._tracks: dict[int, Track] = {}
        self._counts: dict[int, int] = {}
        self._writable = True
        self._closing = threading.Event()
        self._mark(Kind.OPENED, began)
        self.model = self._track(MODEL)
        self._thread = threading.Thread(
            target=self._flush_regularly, args=(flush_seconds,), name="timeline", daemon=True
        )
        self._thread.start()

    def now(self) -> int:
        """Return the time on the timeline, in ns."""
        return self._clock() - self._origin

    def evaluator(self, number: int) -> Track:
        """Return the track of evaluator ``number``, which counts from 0; always the same one.

        Raises:
            ValueError: the number is below 0 or above 65534.
        """
        if not 0 <= number < np.iinfo(np.uint16).max:
            raise ValueError(f"Expected an evaluator from 0 to 65534 but it is {number}")
        return self._track(number + 1)

    def count(self, queue: Queue, length: int) -> None:
        """Record that ``queue`` holds ``length`` entries now; not if it held as many before."""
        with self._lock:
            if self._counts.get(queue) != length:
                self._counts[queue] = length
                now = self.now()
                self._put(_pack(now, now, length, MODEL, Kind.COUNT, queue))
        self._relieve()

    def flush(self) -> None:
        """Write to the file what was recorded, open spans up to now."""
        with self._writing:
            with self._lock:
                now = self.now()
                for track in self._tracks.values():
                    track._cut(now)
                records, self._buffer = self._buffer, bytearray()
            self._write(records)

    def close(self) -> None:
        """End open spans and the session; idempotent. What comes later is not recorded."""
        self._closing.set()
        self._thread.join()
        if not self._file.closed:
            self._mark(Kind.CLOSED, self.now())
            self.flush()
            with self._writing:
                self._writable = False
                self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _track(self, number: int) -> Track:
        with self._lock:
            if number not in self._tracks:
                self._tracks[number] = Track(self, number, self._began)
                now = self.now()
                self._put(_pack(now, now, 0, number, Kind.TRACK, 0))
            return self._tracks[number]

    def _mark(self, kind: Kind, moment: int) -> None:
        with self._lock:
            self._put(_pack(moment, moment, 0, MODEL, kind, 0))

    def _put(self, record: bytes) -> None:
        """Keep a record until the next flush; the lock is held."""
        self._buffer += record

    def _relieve(self) -> None:
        """Flush a full buffer; whoever filled it waits for the disk, so that memory is bounded."""
        if len(self._buffer) >= _MOST_BUFFERED:
            self.flush()

    def _flush_regularly(self, seconds: float) -> None:
        while not self._closing.wait(seconds):
            self.flush()

    def _write(self, records: bytearray) -> None:
        """Write whole records, or log why not and write none again; ``_writing`` is held."""
        try:
            while records and self._writable:
                del records[: self._file.write(records)]  # a file may take less than it is given
        except OSError as error:
            self._writable = False
            _log.warning("the timeline ends here: %s can't be written: %s", self._file.name, error)
