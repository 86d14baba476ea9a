"""A model that learns from all islands of a cluster, whose trainer and whose driver are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from command import SECONDS
from disturbed import begun, workers

from engine.cluster.learning.shared_update import shared_updates_of
from engine.cluster.places import island_folder
from engine.core import Call, Child, Event, Update, UserError, Verdict
from engine.store import read_log

pytestmark = pytest.mark.slow
ISLANDS = 2
ARGUMENTS = (
    *("problem=signal", "fill=none", "learning=mean_baseline", "cluster=ray", "name=run"),
    *("learning.groups=2", "learning.max_lag=8", "search.k=4", "pipeline.children=8", "seed=3"),
    *(f"islands.count={ISLANDS}", f"cluster.workers={ISLANDS}", "evaluation.workers=1"),
    *("budget.seconds=null", "budget.candidates=100000"),  # the test ends it
)


def events(folder: Path, number: int) -> list[Event]:
    try:
        return [recorded.event for recorded in read_log(island_folder(folder, number))]
    except UserError:  # not founded yet
        return []


def updates(folder: Path) -> dict[int, list[Update]]:
    return {
        number: [each for each in events(folder, number) if isinstance(each, Update)]
        for number in range(ISLANDS)
    }


def called(folder: Path, number: int) -> set[int]:
    """The versions that calls of an island began with."""
    return {each.adapter for each in events(folder, number) if isinstance(each, Call)}


def versions(folder: Path) -> int:
    """The latest version that calls of every island have come to."""
    return min(max(called(folder, number), default=0) for number in range(ISLANDS))


def wait_for(process: subprocess.Popen[str], folder: Path, *, above: int) -> int:
    deadline = time.monotonic() + SECONDS
    while (found := versions(folder)) <= above:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.5)
    return found


def test_islands_learn_together_whoever_dies(tmp_path: Path) -> None:
    process, folder = begun(*ARGUMENTS, f"runs={tmp_path}"), tmp_path / "run"
    wait_for(process, folder, above=0)
    (trainer,) = workers(process.pid, kind="TrainerActor")
    os.kill(trainer, signal.SIGKILL)
    # The island that is behind may go on to versions that are there already; one more step may be.
    made = max(each.number for every in updates(folder).values() for each in every)
    second = wait_for(process, folder, above=made + 1)
    process.send_signal(signal.SIGKILL)
    out, _ = process.communicate()
    assert "died" in out and "it is started again from its last checkpoint" in out
    before = updates(folder)
    process = begun(f"resume={folder}")
    wait_for(process, folder, above=second + 2)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 130 and "steps of training stand" in out, out
    every = updates(folder)
    for number in range(ISLANDS):
        assert every[number][: len(before[number])] == before[number]
    for each in every.values():
        assert [update.number for update in each] == sorted({update.number for update in each})
    # What islands say of a step is the same, but for what is their own.
    steps = [{u.number: replace(u, groups=(), swap_ms=0.0) for u in e} for e in every.values()]
    common = steps[0].keys() & steps[1].keys()
    assert all(steps[0][number] == steps[1][number] for number in common)
    assert max(update.version for update in steps[0].values()) > second
    steps = shared_updates_of(every)
    assert {number for each in steps for number in each.logs} == {*range(ISLANDS)}
    for number in range(ISLANDS):
        known = {0}
        log = events(folder, number)
        for event in log:
            if isinstance(event, Update):
                known.add(event.version)
            elif isinstance(event, Call):
                assert event.adapter in known and event.sampled_from is not None
            elif isinstance(event, Child):
                assert len(event.logprobs) == len(event.completion_ids)
        assert len(called(folder, number) - {0}) >= 2  # one before the kill, one after it
        judged = [each.candidate for each in log if isinstance(each, Verdict)]
        assert len(judged) == len(set(judged))
    learning = json.loads((folder / "summary.json").read_text())["learning"]
    assert learning["updates"] >= 3 and learning["mismatch"] < 0.2
    assert learning["version"] == steps[-1].update.version
