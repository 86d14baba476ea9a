"""The timeline: spans worked out by hand, several threads, deaths of every kind, and order."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.core import UserError
from engine.timeline import Timeline, Track
from engine.timeline_file import (
    MODEL,
    RECORD,
    TIMELINE,
    Activity,
    Kind,
    Queue,
    Records,
    read_timeline,
)

NEVER = 3600.0  # seconds between flushes of their own accord


class Clock:
    """A clock that a test sets, in ns; it starts anywhere."""

    def __init__(self) -> None:
        self.time = 1_000_000

    def __call__(self) -> int:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / TIMELINE


def records_of(path: Path, kind: Kind) -> Records:
    every: Records = np.concatenate([np.empty(0, RECORD), *read_timeline(path)])
    found: Records = every[every["kind"] == kind]
    return found


def spans(path: Path, track: int = MODEL) -> list[tuple[int, int, int, int]]:
    """Return start, end, activity and iteration of a track's spans, as they are read."""
    found = records_of(path, Kind.SPAN)
    found = found[found["track"] == track]
    return [(int(r["start"]), int(r["end"]), int(r["what"]), int(r["number"])) for r in found]


def write_spans(path: Path, starts: object, ends: object, tracks: object) -> None:
    records = np.zeros(len(np.asarray(starts)), RECORD)
    records["start"], records["end"], records["track"] = starts, ends, tracks
    records["kind"], records["what"] = Kind.SPAN, Activity.STEP
    records.tofile(path)


def test_spans_come_back_as_they_were_recorded(path: Path, clock: Clock) -> None:
    with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
        clock.time += 5
        with timeline.model.begin(Activity.STEP, iteration=3):
            clock.time += 10
        clock.time += 2
        timeline.model.begin(Activity.AWAIT_PARENT)
        clock.time += 4
        timeline.model.begin(Activity.STEP)  # ends what was done before
        clock.time += 1
        timeline.model.end()
        timeline.model.end()
        timeline.evaluator(6).add(Activity.EVALUATE, start=7, end=20, iteration=2)
    assert spans(path) == [
        (5, 15, Activity.STEP, 3),
        (17, 21, Activity.AWAIT_PARENT, -1),
        (21, 22, Activity.STEP, -1),
    ]
    assert spans(path, track=7) == [(7, 20, Activity.EVALUATE, 2)]
    assert records_of(path, Kind.TRACK)["track"].tolist() == [MODEL, 7]


def test_a_span_ends_with_its_block_though_the_block_fails(path: Path, clock: Clock) -> None:
    with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
        with pytest.raises(RuntimeError), timeline.model.begin(Activity.STEP):
            clock.time += 10
            raise RuntimeError
        clock.time += 10
    assert spans(path) == [(0, 10, Activity.STEP, -1)]


def test_what_overlaps_on_a_track_is_cut_off(path: Path, clock: Clock) -> None:
    with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
        track = timeline.evaluator(0)
        assert timeline.evaluator(0) is track
        track.add(Activity.EVALUATE, start=-50, end=10)  # began before the session did
        track.add(Activity.EVALUATE, start=8, end=12)
        track.add(Activity.EVALUATE, start=3, end=12)  # nothing is left of it
        track.add(Activity.EVALUATE, start=12, end=12)
        track.add(Activity.EVALUATE, start=15, end=16)
    assert [each[:2] for each in spans(path, track=1)] == [(0, 10), (10, 12), (15, 16)]


def test_a_span_across_flushes_is_in_pieces_that_touch(path: Path, clock: Clock) -> None:
    with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
        timeline.model.begin(Activity.STEP, iteration=1)
        for _ in range(3):
            clock.time += 10
            timeline.flush()
        timeline.flush()  # no time has gone by: no piece
        assert spans(path)[-1] == (20, 30, Activity.STEP, 1)  # it is in the file by now
        clock.time += 5
        timeline.model.end()
        clock.time += 5
    assert [each[:2] for each in spans(path)] == [(0, 10), (10, 20), (20, 30), (30, 35)]


def test_a_span_that_is_open_at_the_end_ends_there(path: Path, clock: Clock) -> None:
    with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
        timeline.model.begin(Activity.AWAIT_EVALUATIONS)
        clock.time += 10
    assert spans(path) == [(0, 10, Activity.AWAIT_EVALUATIONS, -1)]


def test_nothing_is_recorded_after_the_end(path: Path, clock: Clock) -> None:
    timeline = Timeline(path, flush_seconds=NEVER, clock=clock)
    timeline.close()
    before = path.read_bytes()
    clock.time += 10
    for _ in range(5000):  # more than fits into memory before a flush
        clock.time += 10
        timeline.model.add(Activity.STEP, start=timeline.now() - 5, end=timeline.now())
    timeline.count(Queue.CHILDREN, 1)
    timeline.flush()
    timeline.close()
    assert path.read_bytes() == before


def test_lengths_are_recorded_when_they_change(path: Path, clock: Clock) -> None:
    with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
        for length in (0, 3, 3, 3, 0):
            timeline.count(Queue.CHILDREN, length)
            timeline.count(Queue.CANDIDATES, 7)
            clock.time += 10
    found = records_of(path, Kind.COUNT)
    assert list(zip(found["start"], found["what"], found["number"], strict=True)) == [
        (0, Queue.CHILDREN, 0),
        (0, Queue.CANDIDATES, 7),
        (10, Queue.CHILDREN, 3),
        (40, Queue.CHILDREN, 0),
    ]


def test_nonsense_is_refused(path: Path) -> None:
    with Timeline(path, flush_seconds=NEVER) as timeline:
        with pytest.raises(ValueError, match="Expected an end at 9 ns or later but it is 8"):
            timeline.model.add(Activity.STEP, start=9, end=8)
        for number in (-1, 65535):
            with pytest.raises(ValueError, match="Expected an evaluator"):
                timeline.evaluator(number)


def test_two_threads_lose_nothing(path: Path) -> None:
    each = 20_000

    def afterwards(track: Track) -> None:
        for start in range(0, 2 * each, 2):
            track.add(Activity.EVALUATE, start=start, end=start + 1, iteration=start)

    with Timeline(path, flush_seconds=0.001) as timeline:
        tracks = [timeline.evaluator(0), timeline.evaluator(1)]
        threads = [threading.Thread(target=afterwards, args=(track,)) for track in tracks]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            timeline.count(Queue.CANDIDATES, 1)
            timeline.flush()
        for thread in threads:
            thread.join()
    expected = [(s, s + 1, Activity.EVALUATE, s) for s in range(0, 2 * each, 2)]
    assert spans(path, track=1) == expected
    assert spans(path, track=2) == expected


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


def test_memory_holds_no_more_than_a_few_thousand_records(path: Path, clock: Clock) -> None:
    with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
        for start in range(20_000):
            timeline.model.add(Activity.STEP, start=start, end=start + 1)
        assert path.stat().st_size >= (20_000 - 4096) * RECORD.itemsize


def test_the_file_grows_by_itself(path: Path) -> None:
    with Timeline(path, flush_seconds=0.001) as timeline:
        timeline.model.begin(Activity.STEP)
        waited = threading.Event()
        for _ in range(5000):
            if spans(path):
                break
            waited.wait(0.002)
        assert spans(path)


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60
    )


def test_a_kill_loses_nothing_before_the_last_flush(path: Path) -> None:
    killed = run(
        """
import os, signal, sys
from pathlib import Path
from engine.timeline import Timeline
from engine.timeline_file import Activity
timeline = Timeline(Path(sys.argv[1]), flush_seconds=3600)
timeline.evaluator(0).add(Activity.EVALUATE, start=0, end=5)
timeline.model.begin(Activity.STEP, iteration=4)
timeline.flush()
timeline.evaluator(0).add(Activity.EVALUATE, start=5, end=9)
os.kill(os.getpid(), signal.SIGKILL)
""",
        str(path),
    )
    assert killed.returncode == -9, killed.stderr
    assert spans(path, track=1) == [(0, 5, Activity.EVALUATE, -1)]
    ((start, end, activity, iteration),) = spans(path)  # it was open, and is known up to the flush
    assert start < end
    assert (activity, iteration) == (Activity.STEP, 4)
    assert not len(records_of(path, Kind.CLOSED))


def test_a_full_disk_ends_the_timeline_and_nothing_else(path: Path) -> None:
    # A limit on the size of files stands in for the disk; it falls into the middle of a record.
    full = run(
        """
import logging, resource, sys
from pathlib import Path
from engine.timeline import Timeline
from engine.timeline_file import Activity
logging.basicConfig(format="%(message)s")
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
with Timeline(Path(sys.argv[1]), flush_seconds=3600) as timeline:
    for round in range(3):
        for start in range(100 * round, 100 * round + 100):
            timeline.model.add(Activity.STEP, start=start, end=start + 1)
        timeline.flush()
""",
        str(path),
    )
    assert full.returncode == 0, full.stderr
    assert full.stderr.count("the timeline ends here") == 1
    assert "File too large" in full.stderr
    assert path.stat().st_size == 1000
    whole = (
        1000 // RECORD.itemsize - 2
    )  # one says that the session began, one that there is a track
    assert [each[0] for each in spans(path)] == list(range(whole))


def cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 7)


def zeros(path: Path) -> None:
    """What some file systems leave after a power cut."""
    with path.open("r+b") as file:
        file.seek(-RECORD.itemsize, 2)
        file.write(bytes(5 * RECORD.itemsize))


def noise(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(-RECORD.itemsize, 2)
        file.write(np.random.default_rng(0).bytes(1000) + b"\xff" * 24)


def backwards(path: Path) -> None:
    record = np.fromfile(path, RECORD)[-1:]
    record["start"], record["end"] = 30, 20
    with path.open("r+b") as file:
        file.seek(-RECORD.itemsize, 2)
        record.tofile(file)


@pytest.mark.parametrize("harm", [cut, zeros, noise, backwards])
def test_a_harmed_end_is_left_out_and_mended(
    path: Path, clock: Clock, harm: Callable[[Path], None]
) -> None:
    write_spans(path, [0, 10, 20], [5, 15, 25], MODEL)
    harm(path)
    before = [(0, 5, Activity.STEP, 0), (10, 15, Activity.STEP, 0)]
    assert spans(path) == before
    with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
        assert timeline.now() == 15
        with timeline.model.begin(Activity.STEP):
            clock.time += 3
    assert spans(path) == [*before, (15, 18, Activity.STEP, -1)]


def test_a_session_goes_on_where_the_last_one_ended(path: Path, clock: Clock) -> None:
    for _ in range(3):
        with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
            clock.time += 4
            with timeline.model.begin(Activity.STEP):
                clock.time += 6
        clock.time += 1_000_000  # nobody ran
    assert [each[:2] for each in spans(path)] == [(4, 10), (14, 20), (24, 30)]
    assert records_of(path, Kind.OPENED)["start"].tolist() == [0, 10, 20]
    assert records_of(path, Kind.CLOSED)["start"].tolist() == [10, 20, 30]


def test_a_long_file_is_read_in_order(path: Path) -> None:
    """Spans are written at their ends; among 50,000 short ones there are long ones."""
    rng = np.random.default_rng(1)
    count = 50_000
    ends = np.sort(rng.integers(1, 10**9, count))
    starts = np.maximum(0, ends - rng.integers(0, 10**5, count))
    long = rng.integers(0, count, 20)
    starts[long] = rng.integers(0, ends[long])
    write_spans(path, starts, ends, np.arange(count) % 60)
    blocks = list(read_timeline(path))
    assert len(blocks) > 1
    read = np.concatenate(blocks)
    assert (np.diff(read["start"]) >= 0).all()
    written = np.fromfile(path, RECORD)
    assert sorted(read.tolist()) == sorted(written.tolist())


def test_a_file_of_nothing_has_no_records(path: Path) -> None:
    path.touch()
    assert list(read_timeline(path)) == []


def test_a_file_that_is_no_timeline_has_no_records(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" * 100)
    assert list(read_timeline(path)) == []


def test_files_that_cannot_be_used_are_named(path: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"timeline .*timeline.bin can't be read: No such file"):
        list(read_timeline(path))
    with pytest.raises(UserError, match=r"can't be written: No such file"):
        Timeline(tmp_path / "missing" / TIMELINE)
    with pytest.raises(UserError, match=r"can't be written: Is a directory"):
        Timeline(tmp_path)
