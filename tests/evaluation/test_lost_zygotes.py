"""Processes that somebody else kills or stops: they are replaced, and no candidate is lost."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

from hostile import ENDLESS, SLOW, collect
from processes import command, descendants, eventually

from engine.core import Failure, Problem
from engine.evaluation import EvaluatorPool

READ_STANDARD_INPUT = [["0", "0x0"], ["63", "0x0"]]  # on x86_64, on aarch64


def running(zygote: int) -> list[int]:
    """Return the living processes below ``zygote`` that neither wait for a program nor are done."""
    return [
        pid
        for pid in descendants(zygote)
        if command(pid)
        and "(stopped)" not in Path(f"/proc/{pid}/status").read_text()
        and Path(f"/proc/{pid}/syscall").read_text().split()[:2] not in READ_STANDARD_INPUT
    ]


def test_a_zygote_killed_while_idle_is_replaced(
    double: Problem, new_zygotes: Callable[[], list[int]]
) -> None:
    with EvaluatorPool(problem=double, workers=1) as pool:
        first = pool.evaluate(double.initial_program)
        (zygote,) = new_zygotes()
        os.kill(zygote, signal.SIGKILL)
        assert eventually(lambda: not command(zygote))
        second = pool.evaluate(double.initial_program)
        assert first.score == second.score == 1.0
        (replaced,) = new_zygotes()
        assert replaced != zygote


def test_a_zygote_killed_at_work_loses_no_candidate(
    double: Problem, new_zygotes: Callable[[], list[int]]
) -> None:
    with EvaluatorPool(problem=double, workers=1) as pool:
        pool.evaluate(double.initial_program)
        pool.submit(candidate_id="a", program=SLOW)
        pool.submit(candidate_id="b", program=SLOW)
        (zygote,) = new_zygotes()
        assert eventually(lambda: running(zygote))
        (child,) = running(zygote)
        os.kill(zygote, signal.SIGKILL)
        assert collect(pool) == {"a": 1.0, "b": 1.0}
        assert not command(child) and new_zygotes() != [zygote]


def test_a_program_whose_zygote_is_lost_twice_is_given_up(
    double: Problem, new_zygotes: Callable[[], list[int]]
) -> None:
    with EvaluatorPool(problem=double, workers=1) as pool:
        pool.evaluate(double.initial_program)
        pool.submit(candidate_id="endless", program=ENDLESS)
        killed = set()
        for _ in range(2):
            assert eventually(lambda: any(map(running, set(new_zygotes()) - killed)))
            (zygote,) = set(new_zygotes()) - killed
            os.kill(zygote, signal.SIGKILL)
            killed.add(zygote)
        ((name, evaluation),) = pool.completed(timeout=30)
        assert (name, evaluation.failure) == ("endless", Failure.CRASH)
        assert evaluation.message == "its zygote was lost twice"
        assert pool.evaluate(double.initial_program).score == 1.0


def test_a_child_killed_from_outside_is_a_crash(
    double: Problem, new_zygotes: Callable[[], list[int]]
) -> None:
    with EvaluatorPool(problem=double, workers=1) as pool:
        pool.evaluate(double.initial_program)
        pool.submit(candidate_id="endless", program=ENDLESS)
        (zygote,) = new_zygotes()
        assert eventually(lambda: running(zygote))
        os.kill(running(zygote)[0], signal.SIGKILL)
        ((_, evaluation),) = pool.completed(timeout=30)
        assert evaluation.message == "its process was killed by SIGKILL"
        assert new_zygotes() == [zygote]


def test_a_stopped_zygote_is_replaced(quick: Problem, new_zygotes: Callable[[], list[int]]) -> None:
    with EvaluatorPool(problem=quick, workers=1) as pool:
        pool.evaluate(quick.initial_program)
        (zygote,) = new_zygotes()
        os.kill(zygote, signal.SIGSTOP)
        assert pool.evaluate(quick.initial_program).score == 1.0
        assert not command(zygote)
