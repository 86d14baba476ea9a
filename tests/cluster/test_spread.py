"""Evaluators in several places: each program has one verdict, wherever it was run."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from command import SECONDS
from processes import eventually, zygotes

from engine import config
from engine.cluster.outposts.outpost import Outpost
from engine.cluster.outposts.spread import OutpostLost, SpreadEvaluators, Submission
from engine.core import Evaluation, UserError
from engine.evaluation import EvaluatorPool, EvaluatorsLost, lane
from engine.parts import read_problem

SETTINGS = config.resolve(["problem=signal", "model=mutation"])
PROBLEM = read_problem(SETTINGS)
CORE = [min(os.sched_getaffinity(0))]
PROGRAM = PROBLEM.initial_program
SLOW = f"import time\ntime.sleep(4)\n{PROGRAM}"


class Elsewhere:
    """An outpost that may be lost, or unable to evaluate."""

    workers = 1

    def __init__(self) -> None:
        text = yaml.safe_dump(dataclasses.asdict(SETTINGS), sort_keys=False)
        self.outpost = Outpost(text, fingerprint=PROBLEM.fingerprint)
        self.outpost.start(CORE)
        self.is_lost = self.is_broken = self.is_wrong = self.is_killed = False
        self.got: list[str] = []

    def submit(self, programs: Sequence[Submission]) -> None:
        if self.is_lost:
            raise OutpostLost("it is dead")
        self.got += [each.name for each in programs]
        self.outpost.submit(programs)

    def take(self, seconds: float) -> Sequence[tuple[str, Evaluation]]:
        found = self.outpost.take(0.05)
        if self.is_lost:
            raise OutpostLost("it is dead")
        if self.is_broken:
            raise UserError("a sandbox did not start")
        if self.is_wrong:
            raise ValueError("nobody expects this")
        return found

    def kill(self) -> None:
        self.is_killed = True


@pytest.fixture(autouse=True)
def cores() -> Iterator[None]:
    """An outpost keeps its process, which is this one here, to the cores of its evaluators."""
    before = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, before)


@pytest.fixture
def spread() -> Iterator[SpreadEvaluators]:
    with EvaluatorPool(problem=PROBLEM, workers=1) as local:
        local.check_walls(strict=False)  # it is warm
        made = SpreadEvaluators(local, workers=1)
        yield made
        made.close()


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    made = Elsewhere()
    yield made
    made.outpost.close()


def verdicts(spread: SpreadEvaluators, count: int) -> dict[str, Evaluation]:
    found: list[tuple[str, Evaluation]] = []
    deadline = time.monotonic() + SECONDS
    while len(found) < count:
        assert time.monotonic() < deadline
        found += spread.completed(timeout=1.0)
    assert spread.in_flight == 0 and spread.completed(timeout=0) == []
    assert len(dict(found)) == count
    return dict(found)


def test_programs_are_shared_out_and_each_has_its_own_verdict(
    spread: SpreadEvaluators, elsewhere: Elsewhere
) -> None:
    rung = threading.Event()
    spread.announce_to(rung.set)
    spread.add(elsewhere)
    assert spread.workers == 2
    for number in range(40):
        program = PROGRAM if number % 2 else "def nothing():\n    return 1\n"
        spread.submit(candidate_id=str(number), program=program, order=number)
    found = verdicts(spread, 40)
    assert rung.is_set()
    for number in range(40):
        assert (found[str(number)].score is not None) == bool(number % 2)
    assert 0 < len(elsewhere.got) < 40


@pytest.mark.parametrize("fault", ["is_lost", "is_broken", "is_wrong"])
def test_what_a_place_had_that_is_of_no_more_use_is_run_elsewhere(
    spread: SpreadEvaluators, elsewhere: Elsewhere, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    """It is dead, can evaluate nothing any more, or fails as nobody expects."""
    spread.add(elsewhere)
    for number in range(30):
        spread.submit(candidate_id=str(number), program=PROGRAM, order=number)
    setattr(elsewhere, fault, True)
    found = verdicts(spread, 30)
    assert elsewhere.got
    assert eventually(lambda: spread.workers == 1)
    assert len({each.score for each in found.values()}) == 1
    assert eventually(lambda: elsewhere.is_killed)
    assert ("a sandbox did not start" in caplog.text) is (fault == "is_broken")


def test_whoever_waits_for_ever_hears_that_no_evaluator_is_left(
    spread: SpreadEvaluators, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "_PAUSES", (0.01,))
    spread.submit(candidate_id="0", program=SLOW)
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with ThreadPoolExecutor(1) as waiting:
        verdict = waiting.submit(spread.completed, timeout=None)
        time.sleep(0.5)  # so that it waits
        assert not verdict.done()
        for zygote in zygotes(os.getpid()):
            os.kill(zygote, signal.SIGKILL)
        with pytest.raises(EvaluatorsLost, match=r"a sandbox did not start: .*/no/such/python"):
            verdict.result(timeout=SECONDS)


def test_the_most_urgent_go_first(spread: SpreadEvaluators) -> None:
    names = [str(number) for number in range(20)]
    for number in (-2, -1):  # which are sent at once: no other is while these go on
        spread.submit(candidate_id=str(number), program=SLOW, order=number)
    for name in reversed(names):
        spread.submit(candidate_id=name, program=PROGRAM, order=int(name))
    came = list[str]()
    deadline = time.monotonic() + SECONDS
    while len(came) < 22:
        assert time.monotonic() < deadline
        came += [name for name, _ in spread.completed(timeout=5.0)]
    assert came == ["-2", "-1", *names]


def test_an_outpost_says_what_is_wrong_with_its_settings(tmp_path: Path) -> None:
    values = dataclasses.asdict(SETTINGS) | {"problem": str(tmp_path / "gone")}
    outpost = Outpost(yaml.safe_dump(values, sort_keys=False), fingerprint="")
    with pytest.raises(Exception, match="gone"):
        outpost.start(CORE)
    outpost.close()


def test_an_outpost_does_not_begin_where_the_problem_is_another() -> None:
    text = yaml.safe_dump(dataclasses.asdict(SETTINGS), sort_keys=False)
    outpost = Outpost(text, fingerprint="another")
    with pytest.raises(UserError, match=r"signal, its data.* so scores would not compare"):
        outpost.start(CORE)
    outpost.close()


def test_an_outpost_that_is_killed_leaves_no_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    Outpost(yaml.safe_dump(dataclasses.asdict(SETTINGS), sort_keys=False), fingerprint="")
    assert not [*tmp_path.iterdir()]  # as it is killed in the end, it could not remove any
