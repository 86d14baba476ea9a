"""The limits on what is under way: hand-worked sequences, and bounds under any load."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from hand_log import fill
from hypothesis import given
from hypothesis import strategies as st

from engine.core import INITIAL, Direction, Evaluation, Event, Session, Verdict
from engine.inference import EngineLoad
from engine.pipeline import BackPressure, Load, LoadWatch
from engine.settings import PipelineSettings
from engine.store import Recorded, RunHistory

PROGRAM = "def f(x):\n    return x\n"


def limits(
    *,
    children: int | None = None,
    candidates: int | None = None,
    adaptive: bool = True,
    most: int = 64,
    workers: int = 2,
) -> BackPressure:
    settings = PipelineSettings(
        overlap=True,
        speculate=True,
        ahead=2,
        children=children,
        candidates=candidates,
        adaptive=adaptive,
        end_early=True,
    )
    return BackPressure(settings=settings, most_children=most, workers=workers)


def load(
    *,
    seconds: float = 1.0,
    children: int = 0,
    waiting: int = 0,
    kv_usage: float = 0.0,
    candidates: int = 0,
    verdicts: int = 0,
    call_seconds: float | None = None,
    memory_usage: float = 0.0,
) -> Load:
    return Load(
        seconds=seconds,
        children=children,
        waiting=waiting,
        kv_usage=kv_usage,
        candidates=candidates,
        verdicts=verdicts,
        call_seconds=call_seconds,
        memory_usage=memory_usage,
    )


def test_without_numbers_the_engine_and_the_evaluators_bound_them() -> None:
    assert (limits().children, limits().candidates) == (64, 64)
    assert limits(workers=20).candidates == 160  # 8 for each
    assert (limits(children=10).children, limits(candidates=3).candidates) == (10, 3)


def test_children_follow_what_waits_at_the_model() -> None:
    limit = limits(children=32)
    seen = []
    for each in (
        load(children=32),  # all run
        load(children=32, waiting=7),  # so long as one of them computes their prompt
        load(children=32, waiting=7),
        load(children=32),
        load(children=32, waiting=1),
        load(children=32, waiting=1),
        load(children=32, waiting=1),  # the third time in a row: 0.75 * 32 = 24
        load(children=24, waiting=1, kv_usage=0.95),  # 0.75 * 24 = 18
        load(children=18, kv_usage=0.9),  # not above: 19
        load(children=18),  # 20
        load(children=40, kv_usage=0.95),  # 0.75 * 40 = 30 would be more than there is
        load(children=10, kv_usage=0.95),  # 7.5
        load(children=7),  # 8.5
        load(children=1, kv_usage=0.95),  # no less than 1
        load(),
        load(waiting=1, kv_usage=0.95),  # of a step that is over: nothing is there
    ):
        limit.observe(each)
        seen.append(limit.children)
    assert seen == [32, 32, 32, 32, 32, 32, 24, 18, 19, 20, 20, 7, 8, 1, 2, 3]


def test_children_climb_back_to_the_bound_and_no_further() -> None:
    limit = limits(children=5)
    limit.observe(load(children=4, kv_usage=0.95))
    seen = []
    for _ in range(5):
        limit.observe(load())
        seen.append(limit.children)
    assert seen == [4, 5, 5, 5, 5]


def test_candidates_last_for_the_time_of_two_calls() -> None:
    limit = limits(workers=2)
    limit.observe(load(candidates=9))  # busy from here on
    limit.observe(load(candidates=9, verdicts=4, call_seconds=3.0))
    assert limit.candidates == 24  # 2 * 3 s * 4 verdicts a second
    # Verdicts 0.9 * 4 + 1, seconds 0.9 * 1 + 1: 2 * 3 * 4.6 / 1.9 = 14.53
    limit.observe(load(candidates=2, verdicts=1, call_seconds=3.0))
    assert limit.candidates == 14
    # The last call took 10 s: 0.9 * 3 + 0.1 * 10 = 3.7; an evaluator was idle, so its verdicts
    # are no measure: 2 * 3.7 * 4.6 / 1.9 = 17.92
    limit.observe(load(candidates=1, verdicts=100, call_seconds=10.0))
    assert limit.candidates == 17
    limit.observe(load(candidates=5, verdicts=100))  # idle when the second began
    assert limit.candidates == 17


def test_candidates_stay_at_the_bound_until_both_sides_are_measured() -> None:
    limit = limits(candidates=20)
    for each in (load(call_seconds=0.1), load(candidates=9), load(candidates=9, call_seconds=0.1)):
        assert limit.candidates == 20
        limit.observe(each)
    # Not a verdict in a second in which all were busy: two for each evaluator are the least.
    assert limit.candidates == 4


def test_a_quick_evaluator_is_not_given_more_than_the_bound() -> None:
    limit = limits(candidates=20)
    for _ in range(2):
        limit.observe(load(candidates=9, verdicts=1000, call_seconds=5.0))
    assert limit.candidates == 20


def test_full_memory_lowers_the_bound_on_candidates() -> None:
    limit = limits(candidates=16, workers=2)
    seen = []
    for usage in (0.9, 0.95, 0.95, 0.95, 0.95, 0.95, 0.95, 0.1, 0.1):
        limit.observe(load(memory_usage=usage))
        seen.append(limit.candidates)
    # 0.9 is not above; 0.75 * 16 = 12, 9, 6.75, 5.06, not below 2 for each worker; then 2 a time
    assert seen == [16, 12, 9, 6, 5, 4, 4, 6, 8]


def test_a_small_number_of_candidates_is_kept_below_two_for_each_worker() -> None:
    limit = limits(candidates=3, workers=8)
    for _ in range(5):
        limit.observe(load(candidates=100, memory_usage=0.99, call_seconds=0.1))
    assert limit.candidates == 3


def test_what_is_scarce_at_one_end_moves_the_other_end_not() -> None:
    limit = limits(children=20, candidates=20)
    limit.observe(load(children=8, kv_usage=0.95))
    assert (limit.children, limit.candidates) == (6, 20)
    limit.observe(load(memory_usage=0.95))
    assert (limit.children, limit.candidates) == (7, 15)


shares = st.floats(0, 1)
loads = st.builds(
    Load,
    seconds=st.floats(0, 10),
    children=st.integers(0, 500),
    waiting=st.integers(0, 3),
    kv_usage=shares,
    candidates=st.integers(0, 500),
    verdicts=st.integers(0, 500),
    call_seconds=st.none() | st.floats(0, 100),
    memory_usage=shares,
)
numbers = st.none() | st.integers(1, 100)


def test_verdicts_on_fills_say_nothing_of_the_evaluators_of_children() -> None:
    def fold(event: Event) -> None:
        history.fold(Recorded(session=0, elapsed=0.0, event=event))

    def judged(name: str) -> None:
        fold(Verdict(candidate=name, evaluation=evaluation, program=PROGRAM))

    history, evaluation = (
        RunHistory(direction=Direction.MAXIMISE),
        Evaluation(score=0.5, failure=None),
    )
    fold(Session(number=0, engine="0", fingerprint="f"))
    judged(INITIAL)
    requests: Any = SimpleNamespace(children=0, seconds=1.0)  # at the model; of its last call
    pressure = limits(candidates=60, workers=1)
    watch = LoadWatch(
        pressure=pressure,
        load=lambda: EngineLoad(waiting=0, kv_usage=0.0),
        requests=requests,
        history=history,
    )
    for number in range(3):
        time.sleep(0.3)
        watch.look(candidates=1)
        made = fill(number, INITIAL, "mutation", PROGRAM)
        fold(made)
        judged(made.id)
    assert pressure.candidates == 2  # as few as there may be: no child had a verdict


@given(st.lists(loads, max_size=40), numbers, numbers, st.integers(1, 20))
def test_no_load_moves_them_below_1_or_above_their_bounds(
    observed: list[Load], children: int | None, candidates: int | None, workers: int
) -> None:
    limit = limits(children=children, candidates=candidates, workers=workers)
    bounds = limit.children, limit.candidates
    for each in observed:
        limit.observe(each)
        assert 1 <= limit.children <= bounds[0]
        assert 1 <= limit.candidates <= bounds[1]


@pytest.mark.parametrize("number", [None, 1, 7])
def test_switched_off_they_are_constant(number: int | None) -> None:
    limit = limits(children=number, candidates=number, adaptive=False)
    before = limit.children, limit.candidates
    assert before == ((64, 64) if number is None else (number, number))
    for each in (
        load(children=9, waiting=9, memory_usage=1.0, candidates=999),
        load(call_seconds=1),
    ):
        limit.observe(each)
        assert (limit.children, limit.candidates) == before
