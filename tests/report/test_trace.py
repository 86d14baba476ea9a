"""The trace and the shares of the time, against figures worked out by hand and by brute force."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core import UserError
from engine.report.clock import ClockUse, EvaluatorUse, ModelUse, clock_use
from engine.report.trace import TRACE, main, write_trace
from engine.timeline import Timeline
from engine.timeline_file import MODEL, RECORD, TIMELINE, Activity, Kind, Queue

NEVER = 3600.0


class Clock:
    """A clock that a test sets, in ns."""

    def __init__(self) -> None:
        self.time = 0

    def __call__(self) -> int:
        return self.time


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A timeline of 100 us: two sessions of a model and three evaluators, of which one is idle.

    ::

        us           0    10   20   30   40   50   60   70   80   90  100
        model             SSSSSSSSSSeeeeessssspppp | SSSSS
        evaluator 0       ....EEEEEEEEEE           |      EEEEE
        evaluator 1            EEEEEEEEEEEEE       |
    """
    path = tmp_path / TIMELINE
    clock = Clock()
    with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
        evaluators = [timeline.evaluator(number) for number in range(3)]
        timeline.count(Queue.CHILDREN, 8)
        for until, activity in (
            (10_000, None),
            (30_000, Activity.STEP),
            (40_000, Activity.AWAIT_EVALUATIONS),
            (45_000, Activity.STEP),
            (55_000, Activity.AWAIT_PARENT),
        ):
            if activity is not None:
                timeline.model.begin(activity, iteration=5)
            clock.time = until
            timeline.model.end()
        timeline.count(Queue.CHILDREN, 0)
        timeline.count(Queue.CANDIDATES, 2)
        evaluators[0].add(Activity.EVALUATE, start=15_000, end=35_000, iteration=4)
        evaluators[1].add(Activity.EVALUATE, start=20_000, end=48_500)
        clock.time = 60_000
    clock.time = 9_000_000
    with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
        evaluators = [timeline.evaluator(number) for number in range(3)]
        with timeline.model.begin(Activity.STEP):
            clock.time += 10_000
        evaluators[0].begin(Activity.EVALUATE)
        clock.time += 5_000
        timeline.flush()
        clock.time += 5_000
        evaluators[0].end()
        clock.time += 20_000
    return path


def test_shares_worked_out_by_hand(path: Path) -> None:
    assert clock_use(path) == ClockUse(
        seconds=100e-6,
        sessions=2,
        model=ModelUse(
            busy=0.35,  # 10-30, 40-45, 60-70
            awaiting_evaluations=0.1,  # 30-40
            awaiting_parent=0.1,  # 45-55
            other=0.45,
        ),
        evaluators=(
            EvaluatorUse(number=0, busy=0.3, awaiting_candidates=0.7),
            EvaluatorUse(number=1, busy=0.285, awaiting_candidates=0.715),
            EvaluatorUse(number=2, busy=0.0, awaiting_candidates=1.0),
        ),
        both=0.2,  # 15-30, 40-45
        model_only=0.15,  # 10-15, 60-70
        evaluators_only=0.235,  # 30-40, 45-48.5, 70-80
        neither=0.415,
    )


def test_a_timeline_of_no_time_has_no_shares(tmp_path: Path) -> None:
    path = tmp_path / TIMELINE
    Timeline(path, flush_seconds=NEVER, clock=Clock()).close()
    assert clock_use(path) is None


def steps(tracks: int) -> st.SearchStrategy[list[list[int]]]:
    """For each track, the moments at which it begins and ends to be busy, in turn."""
    moments = st.lists(st.integers(0, 120), max_size=16).map(lambda each: sorted(set(each)))
    return st.lists(moments, min_size=tracks, max_size=tracks)


@settings(max_examples=80)
@given(
    moments=steps(4),
    waits=st.lists(st.booleans(), min_size=8, max_size=8),
    flushes=st.sets(st.integers(0, 120)),
)
def test_shares_of_random_spans_equal_brute_force(
    moments: list[list[int]], waits: list[bool], flushes: set[int]
) -> None:
    """Track 0 is the model, the others are evaluators; each ns is looked at on its own."""
    end = 121
    doing = np.zeros((4, end), int)
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / TIMELINE
        with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
            tracks = [timeline.model, *(timeline.evaluator(number) for number in range(3))]
            ending: dict[int, list[tuple[int, int, Activity]]] = {}
            for track, each in enumerate(moments):
                for number, (start, stop) in enumerate(zip(each[::2], each[1::2], strict=False)):
                    activity = Activity.EVALUATE if track else Activity.STEP
                    if track == MODEL and waits[number]:
                        activity = Activity.AWAIT_EVALUATIONS
                    doing[track, start:stop] = activity
                    ending.setdefault(stop, []).append((track, start, activity))
            for clock.time in range(end + 1):
                for track, start, activity in ending.get(clock.time, []):
                    tracks[track].add(activity, start=start, end=clock.time)
                if clock.time in flushes:
                    timeline.flush()
            clock.time = end
        use = clock_use(path)
    assert use is not None
    model = doing[MODEL] == Activity.STEP
    any_evaluator = (doing[1:] == Activity.EVALUATE).any(axis=0)
    expected = {
        "busy": model.mean(),
        "awaiting_evaluations": (doing[MODEL] == Activity.AWAIT_EVALUATIONS).mean(),
        "both": (model & any_evaluator).mean(),
        "model_only": (model & ~any_evaluator).mean(),
        "evaluators_only": (~model & any_evaluator).mean(),
        "neither": (~model & ~any_evaluator).mean(),
    }
    for name, share in expected.items():
        found = getattr(use, name) if hasattr(use, name) else getattr(use.model, name)
        assert found == pytest.approx(share, abs=1e-12), name
    assert [each.busy for each in use.evaluators] == pytest.approx(
        list((doing[1:] > 0).mean(axis=1)), abs=1e-12
    )


def test_shares_of_a_long_file(tmp_path: Path) -> None:
    """40,000 steps of 8 ns in 10, and evaluations that go on through thousands of them."""
    path = tmp_path / TIMELINE
    count = 40_000
    records = np.zeros(count + 2, RECORD)
    records["kind"], records["what"] = Kind.SPAN, Activity.STEP
    records["start"][:count] = 10 * np.arange(count)
    records["end"][:count] = records["start"][:count] + 8
    records["track"][count:], records["what"][count:] = (1, 2), Activity.EVALUATE
    records["start"][count:], records["end"][count:] = (0, 200_000), (300_000, 350_000)
    records[np.argsort(records["end"], kind="stable")].tofile(path)
    use = clock_use(path)
    assert use is not None
    total = 10 * count - 2
    assert use.both == 0.8 * 350_000 / total
    assert use.model_only == 0.8 * 50_000 / total
    assert use.evaluators_only == 0.2 * 350_000 / total
    assert use.seconds == total / 1e9


def trace_of(path: Path) -> dict[str, Any]:
    write_trace(path, path.with_name(TRACE))
    trace: dict[str, Any] = json.loads(path.with_name(TRACE).read_text())
    return trace


def check(events: list[dict[str, Any]]) -> None:
    """Check what the format asks of each kind of event, and that times never go back."""
    required = {
        "X": {"ph", "name", "cat", "pid", "tid", "ts", "dur"},
        "C": {"ph", "name", "pid", "ts", "args"},
        "M": {"ph", "name", "pid", "args"},
        "i": {"ph", "s", "name", "cat", "pid", "tid", "ts"},
    }
    times = [event["ts"] for event in events if event["ph"] != "M"]
    assert times == sorted(times)
    for event in events:
        assert required[event["ph"]] <= set(event)
        assert isinstance(event["name"], str)
        assert all(isinstance(event.get(key, 0), (int, float)) for key in ("ts", "dur"))
    ends: dict[int, float] = {}
    for event in events:
        if event["ph"] == "X":
            assert event["dur"] > 0
            assert event["ts"] >= ends.get(event["tid"], 0)  # slices of a thread only nest
            ends[event["tid"]] = round(event["ts"] + event["dur"], 3)


def test_the_trace_holds_every_record(path: Path) -> None:
    trace = trace_of(path)
    assert trace["displayTimeUnit"] == "ms"
    events = trace["traceEvents"]
    check(events)
    names = {
        event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"
    }
    assert names == {1: "model", 2: "evaluator 0", 3: "evaluator 1", 4: "evaluator 2"}
    slices = [
        (names[event["tid"]], event["name"], event["ts"], event["dur"], event.get("args"))
        for event in events
        if event["ph"] == "X"
    ]
    five = {"iteration": 5}
    assert slices == [
        ("model", "step", 10, 20, five),
        ("evaluator 0", "evaluate", 15, 20, {"iteration": 4}),
        ("evaluator 1", "evaluate", 20, 28.5, None),
        ("model", "await evaluations", 30, 10, five),
        ("model", "step", 40, 5, five),
        ("model", "await parent", 45, 10, five),
        ("model", "step", 60, 10, None),
        ("evaluator 0", "evaluate", 70, 5, None),
        ("evaluator 0", "evaluate", 75, 5, None),
    ]
    assert [
        (event["name"], event["ts"], event["args"]) for event in events if event["ph"] == "C"
    ] == [
        ("children in flight", 0, {"children": 8}),
        ("children in flight", 55, {"children": 0}),
        ("candidates in flight", 55, {"candidates": 2}),
    ]
    assert [(event["name"], event["ts"]) for event in events if event["ph"] == "i"] == [
        ("session opened", 0),
        ("session closed", 60),
        ("session opened", 60),
        ("session closed", 100),
    ]


def test_nanoseconds_survive_years(tmp_path: Path) -> None:
    path = tmp_path / TIMELINE
    start = 1000 * 86_400 * 10**9 + 7
    record = np.array([(start, start + 1, -1, MODEL, Kind.SPAN, Activity.STEP)], RECORD)
    record.tofile(path)
    write_trace(path, tmp_path / TRACE)
    assert '"ts":86400000000000.007,"dur":0.001' in (tmp_path / TRACE).read_text()


def test_a_timeline_that_was_cut_off_has_a_trace(path: Path) -> None:
    whole = trace_of(path)["traceEvents"]
    path.write_bytes(path.read_bytes()[:-100])  # in the middle of a record
    part = trace_of(path)["traceEvents"]
    check(part)
    assert 0 < len(part) < len(whole)


def test_a_trace_of_nothing_is_valid(tmp_path: Path) -> None:
    (tmp_path / TIMELINE).touch()
    assert [event["name"] for event in trace_of(tmp_path / TIMELINE)["traceEvents"]] == [
        "process_name"
    ]


def test_a_failed_export_leaves_the_old_trace(tmp_path: Path) -> None:
    (tmp_path / TRACE).write_text("old")
    with pytest.raises(UserError, match="can't be read"):
        write_trace(tmp_path / TIMELINE, tmp_path / TRACE)
    assert (tmp_path / TRACE).read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == [TRACE]
    (tmp_path / TIMELINE).touch()
    with pytest.raises(UserError, match="can't be written: No such file"):
        write_trace(tmp_path / TIMELINE, tmp_path / "missing" / TRACE)
    with pytest.raises(UserError, match="can't be written: Not a directory"):
        write_trace(tmp_path / TIMELINE, tmp_path / TRACE / TRACE)


def test_the_command_exports_and_prints(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(path.parent)]) == 0
    assert json.loads(capsys.readouterr().out)["model"]["busy"] == 0.35
    check(json.loads((path.parent / TRACE).read_text())["traceEvents"])


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["no/such/folder"]])
def test_the_command_refuses_in_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
