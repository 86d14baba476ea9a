"""The timeline: spans worked out by hand, several threads, deaths of every kind, and its format."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.core import UserError
from engine.timeline import (
    EVALUATORS,
    MODEL,
    TIMELINE,
    Activity,
    Event,
    Timeline,
    Track,
    read_events,
)

NEVER = 3600.0  # seconds between writes


class Clock:
    """A clock that a test sets, in us; it starts anywhere."""

    def __init__(self) -> None:
        self.time = 1_000

    def __call__(self) -> int:
        return self.time * 1000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / TIMELINE


def events_of(path: Path, ph: str) -> list[Event]:
    return [event for event in read_events(path) if event.ph == ph]


def spans(path: Path, tid: int = MODEL) -> list[tuple[int, int, str, int | str | None]]:
    """Return start, end, activity and iteration of a track's spans, as they are read."""
    return [
        (event.ts, event.ts + event.dur, event.name, event.args.get("iteration"))
        for event in events_of(path, "X")
        if event.tid == tid
    ]


def test_spans_come_back_as_they_were_recorded(path: Path, clock: Clock) -> None:
    with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
        evaluator = timeline.evaluator(6)
        clock.time += 5
        with timeline.model.begin(Activity.STEP, iteration=3):
            clock.time += 10
        clock.time += 2
        timeline.model.begin(Activity.AWAIT_PARENT)
        clock.time += 4
        timeline.model.begin(Activity.STEP)  # ends what was done before
        evaluator.add(Activity.EVALUATE, 13e-6)
        clock.time += 1
        timeline.model.end()
        timeline.model.end()
    assert spans(path) == [
        (5, 15, Activity.STEP, 3),
        (17, 21, Activity.AWAIT_PARENT, None),
        (21, 22, Activity.STEP, None),
    ]
    assert spans(path, EVALUATORS + 6) == [(8, 21, Activity.EVALUATE, None)]
    assert {event.tid: event.args["name"] for event in events_of(path, "M")} == {
        MODEL: "model",
        EVALUATORS + 6: "evaluator 6",
    }


def test_a_span_ends_with_its_block_though_the_block_fails(path: Path, clock: Clock) -> None:
    with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
        with pytest.raises(RuntimeError), timeline.model.begin(Activity.STEP):
            clock.time += 10
            raise RuntimeError
        clock.time += 10
    assert spans(path) == [(0, 10, Activity.STEP, None)]


def test_what_overlaps_on_a_track_is_cut_off(path: Path, clock: Clock) -> None:
    with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
        track = timeline.evaluator(0)
        for end, seconds in ((10, 60e-6), (12, 4e-6), (12, 9e-6), (16, 1e-6)):
            clock.time = 1000 + end
            track.add(Activity.EVALUATE, seconds)  # the first began before the session did
    assert [each[:2] for each in spans(path, EVALUATORS)] == [(0, 10), (10, 12), (15, 16)]


def test_a_span_that_is_open_at_the_end_ends_there(path: Path, clock: Clock) -> None:
    with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
        timeline.model.begin(Activity.AWAIT_EVALUATIONS)
        clock.time += 10
    assert spans(path) == [(0, 10, Activity.AWAIT_EVALUATIONS, None)]


def test_nothing_is_recorded_after_the_end(path: Path, clock: Clock) -> None:
    timeline = Timeline(path, flush_seconds=NEVER, clock=clock)
    timeline.close()
    before = path.read_bytes()
    clock.time += 10
    timeline.model.add(Activity.STEP, 5e-6)
    timeline.close()
    assert path.read_bytes() == before


def test_two_threads_lose_nothing(path: Path) -> None:
    each = 20_000

    def live(track: Track) -> None:
        for iteration in range(each):
            track.begin(Activity.EVALUATE, iteration=iteration)
            before = timeline.now()
            while timeline.now() == before:  # a span of no time is none
                pass

    with Timeline(path, flush_seconds=0.001) as timeline:
        tracks = [timeline.evaluator(0), timeline.evaluator(1)]
        threads = [threading.Thread(target=live, args=(track,)) for track in tracks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for track in tracks:
            track.end()
    for tid in (EVALUATORS, EVALUATORS + 1):
        assert [span[3] for span in spans(path, tid)] == list(range(each))


def test_threads_on_one_track_leave_spans_that_do_not_overlap(path: Path) -> None:
    def live(track: Track) -> None:
        for _ in range(2000):
            with track.begin(Activity.STEP):
                pass

    with Timeline(path, flush_seconds=0.001) as timeline:
        threads = [threading.Thread(target=live, args=(timeline.model,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = spans(path)
    assert found
    assert all(one[1] <= next_[0] for one, next_ in itertools.pairwise(found))


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60
    )


def test_a_kill_loses_nothing_that_was_written(path: Path, clock: Clock) -> None:
    """The file grows by itself; a span that is open at the kill is lost."""
    killed = run(
        """
import os, signal, sys, time
from pathlib import Path
from engine.timeline import Activity, Timeline
path = Path(sys.argv[1])
timeline = Timeline(path, flush_seconds=0.001)
with timeline.model.begin(Activity.STEP, iteration=4):
    time.sleep(0.001)
timeline.model.begin(Activity.AWAIT_PARENT)
while b"step" not in path.read_bytes():
    time.sleep(0.001)
os.kill(os.getpid(), signal.SIGKILL)
""",
        str(path),
    )
    assert killed.returncode == -9, killed.stderr
    ((start, end, activity, iteration),) = spans(path)
    assert start < end
    assert (activity, iteration) == (Activity.STEP, 4)
    (opened,) = events_of(path, "i")
    assert opened.name == "session opened"
    check_format(path)
    Timeline(path, flush_seconds=NEVER, clock=clock).close()
    assert [event.ts for event in events_of(path, "i")] == [opened.ts, end, end]


def test_a_full_disk_ends_the_timeline_and_nothing_else(path: Path) -> None:
    # A limit on the size of files stands in for the disk; it falls into the middle of a line.
    full = run(
        """
import itertools, logging, resource, sys
from pathlib import Path
from engine.timeline import Activity, Timeline
logging.basicConfig(format="%(message)s")
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
ticks = itertools.count(0, 1000)
with Timeline(Path(sys.argv[1]), flush_seconds=0.001, clock=lambda: next(ticks)) as timeline:
    for iteration in range(1000):
        with timeline.model.begin(Activity.STEP, iteration=iteration):
            pass
""",
        str(path),
    )
    assert full.returncode == 0, full.stderr
    assert full.stderr.count("the timeline ends here") == 1
    assert "File too large" in full.stderr
    assert path.stat().st_size == 10_000
    iterations = [each[3] for each in spans(path)]
    assert 100 < len(iterations) < 200
    assert iterations == list(range(len(iterations)))


def cut(path: Path) -> None:
    """Cut a line off before its end, where what is left of it is an event."""
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)


def zeros(path: Path) -> None:
    """What some file systems leave after a power cut."""
    with path.open("r+b") as file:
        file.seek(-24, 2)
        file.write(bytes(100))


def noise(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(-24, 2)
        file.write(np.random.default_rng(0).bytes(1000) + b"\xff" * 24)


def backwards(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"ts":20,"dur":5', b'"ts":20,"dur":-5'))


def no_text(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"ts":20', b'"name":"\xe7","ts":20'))


def nested(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"ts":20', b'"x":%s,"ts":20' % (b"[" * 100_000)))


@pytest.mark.parametrize("harm", [cut, zeros, noise, backwards, no_text, nested])
def test_a_harmed_end_is_left_out_and_mended(
    path: Path, clock: Clock, harm: Callable[[Path], None]
) -> None:
    lines = (f'{{"ph":"X","name":"step","pid":1,"tid":1,"ts":{ts},"dur":5}},' for ts in (0, 10, 20))
    path.write_text("\n".join(["[", *lines, ""]))
    before = [(0, 5, Activity.STEP, None), (10, 15, Activity.STEP, None)]
    assert spans(path) == [*before, (20, 25, Activity.STEP, None)]
    harm(path)
    assert spans(path) == before
    with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
        assert timeline.now() == 15
        with timeline.model.begin(Activity.STEP):
            clock.time += 3
    assert spans(path) == [*before, (15, 18, Activity.STEP, None)]
    check_format(path)


def test_a_session_goes_on_where_the_last_one_ended(path: Path, clock: Clock) -> None:
    for _ in range(3):
        with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
            clock.time += 4
            with timeline.model.begin(Activity.STEP):
                clock.time += 6
        clock.time += 1_000_000  # nobody ran
    assert [each[:2] for each in spans(path)] == [(4, 10), (14, 20), (24, 30)]
    moments = [(event.name, event.ts) for event in events_of(path, "i")]
    assert moments[::2] == [("session opened", 0), ("session opened", 10), ("session opened", 20)]
    assert moments[1::2] == [
        *(("session closed", 10), ("session closed", 20), ("session closed", 30))
    ]
    check_format(path)


def check_format(path: Path) -> None:
    """Check what the format asks of each kind of event, and that a track's slices do not overlap.

    A reader takes the closing bracket, which the format lets be left out, as given.
    """
    required = {
        "X": {"ph", "name", "pid", "tid", "ts", "dur"},
        "M": {"ph", "name", "pid", "args"},
        "i": {"ph", "name", "pid", "tid", "ts"},
    }
    events: list[dict[str, Any]] = json.loads(path.read_text().rstrip().removesuffix(",") + "]")
    ends: dict[int, int] = {}
    for event in events:
        assert required[event["ph"]] <= set(event)
        if event["ph"] == "X":
            assert event["dur"] > 0
            assert event["ts"] >= ends.get(event["tid"], 0)
            ends[event["tid"]] = event["ts"] + event["dur"]


@pytest.mark.parametrize("content", [b"", b"[", b"SQLite format 3\0" * 100])
def test_a_file_without_a_sound_line_is_begun_again(
    path: Path, clock: Clock, content: bytes
) -> None:
    path.write_bytes(content)
    assert list(read_events(path)) == []
    with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
        timeline.model.begin(Activity.STEP)
        clock.time += 10
    assert spans(path) == [(0, 10, Activity.STEP, None)]
    check_format(path)


def test_files_that_cannot_be_used_are_named(path: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"timeline .*timeline.json can't be read: No such file"):
        list(read_events(path))
    with pytest.raises(UserError, match=r"can't be written: No such file"):
        Timeline(tmp_path / "missing" / TIMELINE)
    with pytest.raises(UserError, match=r"can't be written: Is a directory"):
        Timeline(tmp_path)
