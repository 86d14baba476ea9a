"""Processes that somebody else kills or stops: they are replaced, and no candidate is lost."""

import dataclasses
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile import ENDLESS, SLOW, collect
from processes import command, descendants, eventually, zygotes
from verdicts import evaluate

from engine.core import Failure, Limits, Problem, UserError
from engine.evaluation import EvaluatorPool, lane

PARENT = """
import os
def double(values, offset):
    print(os.getppid())
    return 2 * values, 4
"""
READ_STANDARD_INPUT = [["0", "0x0"], ["63", "0x0"]]  # on x86_64, on aarch64


def waits(pid: int) -> bool:
    """Whether ``pid`` is gone, done, or waits for a program."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        call = Path(f"/proc/{pid}/syscall").read_text().split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return not command(pid) or "(stopped)" in status or call in READ_STANDARD_INPUT


def running(zygote: int) -> list[int]:
    """Return the processes below ``zygote`` that run a program.

    A process that was just forked looks busy until it waits for its program, so it has to be seen
    at work twice.
    """
    first = [pid for pid in descendants(zygote) if not waits(pid)]
    time.sleep(0.05)
    return [pid for pid in first if not waits(pid)]


def child_at_work(zygote: int) -> int:
    """Wait for the process below ``zygote`` that runs a program, and return its ID."""
    found: list[int] = []

    def alone() -> bool:
        found[:] = running(zygote)
        return len(found) == 1

    assert eventually(alone)
    return found[0]


@pytest.fixture(scope="module")
def pool(double: Problem) -> Iterator[EvaluatorPool]:
    """One worker, with so much time that none of these programs ends by it."""
    limits = Limits(seconds=60, memory_bytes=256 << 20)
    with EvaluatorPool(problem=dataclasses.replace(double, limits=limits), workers=1) as pool:
        yield pool


@pytest.fixture
def zygote(pool: EvaluatorPool) -> int:
    return zygote_of(pool)


def zygote_of(pool: EvaluatorPool) -> int:
    """The zygote of the pool's one worker, warm."""
    return int(evaluate(pool, PARENT).artifacts["stdout"].split()[0])


def test_a_zygote_killed_while_idle_is_replaced(pool: EvaluatorPool, zygote: int) -> None:
    os.kill(zygote, signal.SIGKILL)
    assert eventually(lambda: not command(zygote))
    after = evaluate(pool, PARENT)
    assert after.score == 1.0
    assert str(zygote) not in after.artifacts["stdout"].split()


def test_a_zygote_killed_at_work_loses_no_candidate(pool: EvaluatorPool, zygote: int) -> None:
    pool.submit(candidate_id="a", program=SLOW.replace("0.3", "1.5"))  # to be found at work
    pool.submit(candidate_id="b", program=SLOW)
    child = child_at_work(zygote)
    os.kill(zygote, signal.SIGKILL)
    assert collect(pool) == {"a": 1.0, "b": 1.0}
    assert eventually(lambda: not command(child) and not command(zygote))


def test_a_program_whose_zygote_is_lost_twice_is_given_up(
    pool: EvaluatorPool, zygote: int, double: Problem
) -> None:
    others = {*zygotes(os.getpid())} - {zygote}
    pool.submit(candidate_id="endless", program=ENDLESS)
    killed = set[int]()
    for _ in range(2):
        assert eventually(
            lambda: any(map(running, {*zygotes(os.getpid())} - others - killed)), seconds=60
        )
        (now,) = {*zygotes(os.getpid())} - others - killed
        os.kill(now, signal.SIGKILL)
        killed.add(now)
    ((name, evaluation),) = pool.completed(timeout=60)
    assert (name, evaluation.failure) == ("endless", Failure.CRASH)
    assert evaluation.message == "its sandbox was lost twice"
    assert evaluate(pool, double.initial_program).score == 1.0


def test_where_no_zygote_can_be_started_a_program_waits_for_one(
    double: Problem, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with EvaluatorPool(problem=double, workers=1) as pool:
        zygote = zygote_of(pool)
        monkeypatch.setattr(sys, "executable", "/no/such/python")  # as one that has no room
        os.kill(zygote, signal.SIGKILL)
        pool.submit(candidate_id="waits", program=double.initial_program)
        assert eventually(lambda: "a sandbox did not start: " in caplog.text)
        assert pool.completed(timeout=0) == []
        monkeypatch.undo()
        ((name, evaluation),) = pool.completed(timeout=60)
        assert (name, evaluation.score) == ("waits", 1.0)


def test_where_no_zygote_is_to_be_had_there_is_no_verdict(
    double: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "_PAUSES", (0.01,))
    with EvaluatorPool(problem=double, workers=1) as pool:
        zygote = zygote_of(pool)
        monkeypatch.setattr(sys, "executable", "/no/such/python")
        os.kill(zygote, signal.SIGKILL)
        pool.submit(candidate_id="lost", program=double.initial_program)
        with pytest.raises(UserError, match=r"a sandbox did not start: .*/no/such/python.*resume"):
            pool.completed(timeout=60)
        assert pool.in_flight == 1


def test_where_memory_runs_out_a_candidate_ends_before_the_run(
    pool: EvaluatorPool, zygote: int
) -> None:
    pool.submit(candidate_id="endless", program=ENDLESS)
    child = child_at_work(zygote)
    scores = [score_of(each) for each in (zygote, child)]
    os.kill(child, signal.SIGKILL)
    assert collect(pool) == {"endless": Failure.CRASH}
    assert scores == [1000, 1000] and score_of(os.getpid()) < 1000


def score_of(pid: int) -> int:
    """How early the kernel ends a process where memory runs out, beyond what it uses."""
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


def test_a_child_killed_from_outside_is_a_crash(pool: EvaluatorPool, zygote: int) -> None:
    pool.submit(candidate_id="endless", program=ENDLESS)
    os.kill(child_at_work(zygote), signal.SIGKILL)
    ((_, evaluation),) = pool.completed(timeout=30)
    assert evaluation.message == "its process was killed by SIGKILL"
    assert command(zygote)


def test_a_stopped_zygote_is_replaced(double: Problem) -> None:
    with EvaluatorPool(problem=double, workers=1) as pool:
        zygote = zygote_of(pool)
        os.kill(zygote, signal.SIGSTOP)
        assert evaluate(pool, double.initial_program).score == 1.0
        assert not command(zygote)
