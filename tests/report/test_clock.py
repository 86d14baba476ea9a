"""The shares of the time, against figures worked out by hand and by brute force."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.report.clock import busy_over_time, clock_use
from engine.timeline import TIMELINE, Activity, Timeline

NEVER = 3600.0


class Clock:
    """A clock that a test sets, in us."""

    def __init__(self) -> None:
        self.time = 0

    def __call__(self) -> int:
        return self.time * 1000


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
        clock.time = 10
        timeline.model.begin(Activity.STEP, iteration=5)
        clock.time = 30
        timeline.model.begin(Activity.AWAIT_EVALUATIONS)
        clock.time = 35
        evaluators[0].add(Activity.EVALUATE, 20e-6)
        clock.time = 40
        timeline.model.begin(Activity.STEP)
        clock.time = 45
        timeline.model.begin(Activity.AWAIT_PARENT)
        clock.time = 48
        evaluators[1].add(Activity.EVALUATE, 28e-6)
        clock.time = 55
        timeline.model.end()
        clock.time = 60
    clock.time = 9_000
    with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
        evaluators = [timeline.evaluator(number) for number in range(3)]
        with timeline.model.begin(Activity.STEP):
            clock.time += 10
        clock.time += 10
        evaluators[0].add(Activity.EVALUATE, 10e-6)
        clock.time += 20
    return path


def test_shares_worked_out_by_hand(path: Path) -> None:
    use = clock_use(path)
    assert use is not None
    model, evaluators = use.pop("model"), use.pop("evaluators")
    assert use == pytest.approx(
        {
            "seconds": 100e-6,
            "sessions": 2,
            "both": 0.2,  # 15-30, 40-45
            "model_only": 0.15,  # 10-15, 60-70
            "evaluators_only": 0.23,  # 30-40, 45-48, 70-80
            "neither": 0.42,
        }
    )
    assert model == pytest.approx(
        {
            "busy": 0.35,  # 10-30, 40-45, 60-70
            "awaiting_evaluations": 0.1,  # 30-40
            "awaiting_parent": 0.1,  # 45-55
            "awaiting_implementer": 0.0,
            "other": 0.45,
        }
    )
    for number, busy in enumerate((0.3, 0.28, 0.0)):
        expected = {
            "number": number,
            "busy": busy,
            "filling": 0.0,
            "awaiting_candidates": 1 - busy,
        }
        assert evaluators[number] == pytest.approx(expected)
    assert len(evaluators) == 3


def test_a_filler_counts_while_its_evaluator_has_no_candidate(tmp_path: Path) -> None:
    path, clock = tmp_path / TIMELINE, Clock()
    with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
        evaluator, idle, filler = timeline.evaluator(0), timeline.evaluator(1), timeline.filler(0)
        for until, track, seconds in (
            (20, filler, 15e-6),  # 5-20
            (30, evaluator, 20e-6),  # 10-30
            (50, filler, 25e-6),  # 25-50
            (100, evaluator, 10e-6),  # 90-100
        ):
            clock.time = until
            track.add(Activity.FILL if track is filler else Activity.EVALUATE, seconds)
        assert idle is not evaluator
    use = clock_use(path)
    assert use is not None
    assert use["evaluators"] == [
        pytest.approx({"number": 0, "busy": 0.3, "filling": 0.25, "awaiting_candidates": 0.45}),
        pytest.approx({"number": 1, "busy": 0.0, "filling": 0.0, "awaiting_candidates": 1.0}),
    ]
    assert use["evaluators_only"] == pytest.approx(0.3)  # a fill is no candidate
    assert sum(each["evaluators"] for each in busy_over_time(path, bins=1)) == pytest.approx(0.15)


def test_a_timeline_of_no_time_has_no_shares(tmp_path: Path) -> None:
    path = tmp_path / TIMELINE
    Timeline(path, flush_seconds=NEVER, clock=Clock()).close()
    assert clock_use(path) is None


def test_a_timeline_on_which_nobody_worked_has_shares(tmp_path: Path) -> None:
    path, clock = tmp_path / TIMELINE, Clock()
    with Timeline(path, flush_seconds=NEVER, clock=clock):
        clock.time = 10
    use = clock_use(path)
    assert use is not None
    assert (use["seconds"], use["model"]["other"], use["neither"]) == (10e-6, 1, 1)
    assert use["evaluators"] == []


def steps(tracks: int) -> st.SearchStrategy[list[list[int]]]:
    """For each track, the moments at which it begins and ends to be busy, in turn."""
    moments = st.lists(st.integers(0, 120), max_size=16).map(lambda each: sorted(set(each)))
    return st.lists(moments, min_size=tracks, max_size=tracks)


@given(moments=steps(4), waits=st.lists(st.booleans(), min_size=8, max_size=8))
def test_shares_of_random_spans_equal_brute_force(
    moments: list[list[int]], waits: list[bool]
) -> None:
    """Track 0 is the model, the others are evaluators; each us is looked at on its own."""
    end = 121
    doing = np.full((4, end), "", "U20")
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / TIMELINE
        with Timeline(path, flush_seconds=NEVER, clock=clock) as timeline:
            tracks = [timeline.model, *(timeline.evaluator(number) for number in range(3))]
            ending: dict[int, list[tuple[int, int, Activity]]] = {}
            for track, each in enumerate(moments):
                for number, (start, stop) in enumerate(zip(each[::2], each[1::2], strict=False)):
                    activity = Activity.EVALUATE if track else Activity.STEP
                    if track == 0 and waits[number]:
                        activity = Activity.AWAIT_EVALUATIONS
                    doing[track, start:stop] = activity
                    ending.setdefault(stop, []).append((track, start, activity))
            for clock.time in range(end + 1):
                for track, start, activity in ending.get(clock.time, []):
                    tracks[track].add(activity, (clock.time - start + 0.5) / 1e6)
            clock.time = end
        use = clock_use(path)
    assert use is not None
    model = doing[0] == Activity.STEP
    any_evaluator = (doing[1:] == Activity.EVALUATE).any(axis=0)
    expected = {
        "busy": model.mean(),
        "awaiting_evaluations": (doing[0] == Activity.AWAIT_EVALUATIONS).mean(),
        "both": (model & any_evaluator).mean(),
        "model_only": (model & ~any_evaluator).mean(),
        "evaluators_only": (~model & any_evaluator).mean(),
        "neither": (~model & ~any_evaluator).mean(),
    }
    for name, share in expected.items():
        found = use[name] if name in use else use["model"][name]
        assert found == pytest.approx(share, abs=1e-12), name
    assert [each["busy"] for each in use["evaluators"]] == pytest.approx(
        list((doing[1:] != "").mean(axis=1)), abs=1e-12
    )


@pytest.mark.parametrize("bins", [1, 7, 100])
def test_what_was_busy_when_adds_up_to_the_shares_of_the_whole(path: Path, bins: int) -> None:
    whole, parts = clock_use(path), busy_over_time(path, bins=bins)
    assert whole is not None and len(parts) == bins
    assert parts[0]["since"] == 0 and parts[-1]["until"] == pytest.approx(whole["seconds"])
    mean = {name: sum(part[name] for part in parts) / bins for name in ("model", "evaluators")}
    assert mean["model"] == pytest.approx(whole["model"]["busy"])
    each = [evaluator["busy"] for evaluator in whole["evaluators"]]
    assert mean["evaluators"] == pytest.approx(sum(each) / len(each))


def test_parts_of_the_time_are_those_of_the_picture(path: Path) -> None:
    parts = busy_over_time(path, bins=10)
    assert [round(part["model"], 6) for part in parts[:5]] == [0, 1, 1, 0, 0.5]
    assert [round(3 * part["evaluators"], 6) for part in parts[:5]] == [0, 0.5, 2, 1.5, 0.8]
    assert busy_over_time(path.parent / "none", bins=10) == []
