"""1,000 randomised schedules of faults: whatever befalls a run, nothing is lost or left behind.

Each test lives through ten schedules (``lives.py``) and checks the one list of what holds of all
(``invariants.py``). Of one that fails, the faults are left out that it does not take.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fault_lists import Fault, Kind, cut_down, drawn_faults
from invariants import (
    INVARIANTS,
    Held,
    nothing_is_left_behind,
    the_model_does_one_thing_at_a_time,
)
from lives import Life, OpenPool, late_pool, live
from mortal_pool import mortal_pool, numbers
from schedules import Schedule, drawn, small_problem

from engine import config
from engine.core import Failure, Problem, UserError
from engine.pipeline import back_pressure
from engine.settings import RunSettings
from engine.steering import steering
from engine.store import EventLog

BLOCKS, IN_A_BLOCK, QUICK = 100, 10, 15
"""Schedules, ten a test; the first tests are the quick ones."""
REAL = 20
"""Schedules with the real evaluators."""
_TRIES = 3
"""Times that a shorter list of faults may go well before it counts as one that does: which thread
is first is up to the machine."""


@pytest.fixture(scope="module")
def defaults() -> RunSettings:
    return config.resolve([])


@pytest.fixture(scope="module")
def problem(defaults: RunSettings) -> Problem:
    return small_problem(defaults)


@pytest.fixture(scope="module")
def totals() -> Counter[str]:
    """What happened in all schedules together."""
    return Counter()


@pytest.fixture
def in_memory(tmp_path: Path) -> Iterator[Path]:
    """A folder where a log's appends do not wait for a disk, if there is such a place."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        yield Path(folder)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a folder for temporary files in which nobody else's lie."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have looked at once what is looked at four times a second: these runs last a tenth of one."""
    monkeypatch.setattr(back_pressure, "_BETWEEN_LOADS", 0.0)
    monkeypatch.setattr(steering, "_SECONDS_BETWEEN_LOOKS", 0.0)


def checked(
    schedule: Schedule, problem: Problem, folder: Path, *, open_pool: OpenPool = late_pool
) -> Life:
    """Live through a schedule, and check all that holds of it."""
    temporary = Path(tempfile.gettempdir())
    before = Held.now(temporary)
    life = live(schedule, problem, folder, open_pool=open_pool)
    nothing_is_left_behind(before, Held.now(temporary), folder)
    the_model_does_one_thing_at_a_time(folder)
    for invariant in INVARIANTS:
        invariant(schedule, problem, life)
    return life


def least(schedule: Schedule, problem: Problem, folder: Path) -> tuple[Fault, ...]:
    """Return the faults without which a schedule that fails would not."""
    attempts = (folder / str(number) for number in range(1000))

    def fails(faults: tuple[Fault, ...]) -> bool:
        for _ in range(_TRIES):
            try:
                checked(replace(schedule, faults=faults), problem, next(attempts))
            except Exception:
                return True
        return False

    folder.mkdir()
    return cut_down(schedule.faults, fails)


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, marks=() if block < QUICK else pytest.mark.slow)
        for block in range(BLOCKS)
    ],
)
def test_each_schedule_leaves_a_log_that_adds_up(
    defaults: RunSettings,
    problem: Problem,
    totals: Counter[str],
    block: int,
    tmp_path: Path,
    in_memory: Path,
) -> None:
    for seed in range(block * IN_A_BLOCK, (block + 1) * IN_A_BLOCK):
        schedule = drawn(seed, defaults)
        folder = (tmp_path if seed % IN_A_BLOCK == 0 else in_memory) / str(seed)
        try:
            life = checked(schedule, problem, folder)
        except Exception as error:
            cut = least(schedule, problem, in_memory / "cut down")
            pytest.fail(f"schedule {seed}: {error!r}\nof {schedule.faults}\ncut down to {cut}")
        count(totals, schedule, life)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(REAL))
def test_schedules_with_the_real_evaluators_leave_no_process(
    defaults: RunSettings, seed: int, tmp_path: Path
) -> None:
    faults = drawn_faults(random.Random(f"real evaluators {seed}"))
    schedule = replace(drawn(seed, defaults), stages=1, faults=faults)
    checked(schedule, numbers(), tmp_path / "run", open_pool=mortal_pool)


def test_what_a_full_disk_leaves_open_is_found_and_its_faults_are_cut_down(
    defaults: RunSettings, problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that the schedules can fail: a log that keeps its lock where it can't be written."""
    commit = EventLog.commit

    def keeping_the_lock(log: EventLog) -> None:
        try:
            commit(log)
        except UserError:
            log._lock = -1  # so that closing does not let go of it
            raise

    monkeypatch.setattr(EventLog, "commit", keeping_the_lock)
    faults = (
        *(Fault(kind=Kind.LATE), Fault(kind=Kind.HINT, after=1), Fault(kind=Kind.STOP, after=6)),
        *(Fault(kind=Kind.FULL, after=4), Fault(kind=Kind.ABORT, after=2)),
    )
    schedule = replace(drawn(4, defaults), faults=faults)
    with pytest.raises((AssertionError, UserError)):
        checked(schedule, problem, tmp_path / "whole")
    assert least(schedule, problem, tmp_path / "cut") == (Fault(kind=Kind.FULL),)


def count(totals: Counter[str], schedule: Schedule, life: Life) -> None:
    history = life.history
    totals["schedules"] += 1
    totals["clean"] += schedule.is_clean
    totals["right guesses"] += history.guessed
    for each in history.given_up:
        call = history.calls.get(each.iteration)
        wrong = call is not None and call.island == each.island and call.parent != each.parent
        totals["wrong guesses"] += wrong
        totals["given up"] += 1
        totals["wasted tokens"] += each.generated_tokens
    totals["resumes"] += len(history.sessions) - 1
    totals["calls"] += len(history.calls)
    totals["candidates"] += history.evaluated
    home = {str(call.iteration): call.island for call in history.calls.values()}
    totals["parents from elsewhere"] += sum(
        home.get(call.parent.partition(".")[0], call.island) != call.island
        for call in history.calls.values()
    )
    asked = [*history.calls.values()]
    totals.update(call.operator for call in asked)
    totals.update(f"guessed {call.operator}" for call in asked if call.guessed)
    totals["guesses on guesses"] += sum(bool(call.ahead) for call in history.calls.values())
    lists = {call.iteration for call in asked if call.operator == "verbalized"}
    totals["second answers"] += sum(
        child.index > 0 and bool(child.completion) and child.iteration in lists
        for child in history.children.values()
        if schedule.is_clean
    )
    totals["shown"] += sum(len(call.shown) for call in asked)
    totals.update(f"rule {call.rule}" for call in asked)
    totals["cells"] += sum(verdict.cell is not None for verdict in history.verdicts.values())
    totals["aborted"] += sum(c.finish_reason == "abort" for c in history.children.values())
    totals.update(f"fault {each.kind}" for each in life.befallen)
    totals["crashes"] += sum(
        v.evaluation.failure is Failure.CRASH for v in history.verdicts.values()
    )
    totals.update(f"refused: {reason}" for reason in history.refusals.elements())


def test_all_of_that_did_happen(totals: Counter[str]) -> None:
    """Guards the schedules: they hold nothing to account if nothing happens in them."""
    if totals["schedules"] < QUICK * IN_A_BLOCK:
        pytest.skip("not all schedules were gone through")
    expected = {
        "clean": 50,
        "right guesses": 80,
        "wrong guesses": 25,
        "guesses on guesses": 2,
        "wasted tokens": 100,
        "resumes": 60,
        "parents from elsewhere": 20,
        "aborted": 50,
        "crashes": 30,
        "shown": 2000,
        "cells": 300,
        "rule uniform": 50,
        "rule weighted": 200,
        "crossover": 50,
        "verbalized": 100,
        "guessed verbalized": 25,
        "second answers": 10,
        "refused: absent": 50,
        "repair": 50,
        "guessed crossover": 10,
        "guessed repair": 3,
        **{f"fault {kind}": 2 for kind in Kind},
        **{f"refused: {reason}": 20 for reason in ("budget", "duplicate", "undefined", "unparsed")},
    }
    assert {name: n for name, n in expected.items() if totals[name] < n} == {}, dict(totals)
