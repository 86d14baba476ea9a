"""The processes that do syntax work: what they return, and what they survive."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from processes import lives

from engine.core import UserError
from engine.syntax import read
from engine.syntax import workers as module
from engine.syntax.workers import SyntaxWorkers, WorkerDied

CORES = os.sched_getaffinity(0)


@pytest.fixture(scope="module")
def workers() -> Iterator[SyntaxWorkers]:
    with SyntaxWorkers(count=2, cores=CORES) as found:
        yield found


def test_what_a_function_returns_comes_back_from_another_process(workers: SyntaxWorkers) -> None:
    texts = [f"x = {number}\n" for number in range(50)]
    results = [workers.submit(read, text) for text in texts]
    assert [result.result() for result in results] == [read(text) for text in texts]
    ids = {workers.submit(os.getpid).result() for _ in range(10)}
    assert os.getpid() not in ids and 1 <= len(ids) <= 2


def test_what_a_function_raises_is_raised_where_the_result_is_awaited(
    workers: SyntaxWorkers,
) -> None:
    failed, fine = workers.submit(int, "one"), workers.submit(int, "1")
    with pytest.raises(ValueError, match="'one'"):
        failed.result()
    assert fine.result() == 1


class Odd(Exception):
    """An error that can be pickled and not made again."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} and {two}")


def raise_odd() -> None:
    raise Odd("one", "two")


def test_what_cannot_cross_is_told_and_the_rest_is_done(workers: SyntaxWorkers) -> None:
    strangers = [
        workers.submit(lambda: None),
        workers.submit(compile, "x = 1", "", "exec"),  # what it returns can't be pickled
        workers.submit(raise_odd),
    ]
    after = [workers.submit(int, str(number)) for number in range(40)]
    words = ["can't be handed to another process: ", "pickle", "one and two"]
    for each, said in zip(strangers, words, strict=True):
        with pytest.raises(TypeError, match=said):
            each.result(60)
    assert [each.result(60) for each in after] == list(range(40))


def test_modules_are_found_where_this_process_finds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_the_user.py").write_text("def double(x):\n    return 2 * x\n")
    (tmp_path / "pickle.py").write_text("raise RuntimeError('it hides a module')\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    with SyntaxWorkers(count=1, cores=CORES) as workers:
        double = importlib.import_module("of_the_user").double
        assert workers.submit(double, 21).result(60) == 42


def test_what_is_printed_is_no_result(workers: SyntaxWorkers) -> None:
    assert workers.submit(print, "not a message", flush=True).result() is None
    assert workers.submit(int, "2").result() == 2


def test_work_that_kills_its_process_is_lost_and_no_other() -> None:
    with SyntaxWorkers(count=1, cores=CORES) as workers:
        before = [workers.submit(int, str(number)) for number in range(5)]
        deadly = workers.submit(partial(os._exit, 3))
        after = [workers.submit(int, str(number)) for number in range(5, 30)]
        assert [each.result() for each in before + after] == list(range(30))
        with pytest.raises(WorkerDied):
            deadly.result()


def test_a_process_that_is_killed_from_outside_is_replaced() -> None:
    with SyntaxWorkers(count=1, cores=CORES) as workers:
        first = workers.submit(os.getpid).result()
        os.kill(first, signal.SIGKILL)
        second = workers.submit(os.getpid)
        assert second.result() != first  # the work was not what it died of


def no_process(*arguments: object, **options: object) -> None:
    raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")


def test_where_no_process_can_be_started_all_work_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module.subprocess, "Popen", no_process)
    with SyntaxWorkers(count=2, cores=CORES) as workers:
        first = [workers.submit(int, str(number)) for number in range(50)]
        for each in [*first, workers.submit(int, "1")]:
            with pytest.raises(UserError, match="temporarily unavailable; make room"):
                each.result(60)


def test_where_a_dead_one_cant_be_replaced_what_it_had_is_refused_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with SyntaxWorkers(count=1, cores=CORES) as workers:
        process = workers.submit(os.getpid).result()
        monkeypatch.setattr(module.subprocess, "Popen", no_process)
        os.kill(process, signal.SIGKILL)
        for each in [workers.submit(int, str(number)) for number in range(50)]:
            with pytest.raises(UserError, match="no process"):
                each.result(60)


def test_the_processes_end_with_their_owner_and_with_their_owners_death() -> None:
    with SyntaxWorkers(count=1, cores=CORES) as workers:
        process = workers.submit(os.getpid).result()
    assert not lives(process)
    script = (
        "import os\nfrom engine.syntax.workers import SyntaxWorkers\n"
        "workers = SyntaxWorkers(count=1, cores=os.sched_getaffinity(0))\n"
        "print(workers.submit(os.getpid).result(), flush=True)\nos._exit(0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    while lives(int(done.stdout)):  # a test that hangs has failed
        time.sleep(0.01)


def test_ctrl_c_at_a_terminal_does_not_reach_one_that_is_starting() -> None:
    script = (
        "import os, signal, time\nfrom engine.syntax.workers import SyntaxWorkers\n"
        "signal.signal(signal.SIGINT, lambda number, frame: None)\n"
        "with SyntaxWorkers(count=1, cores=os.sched_getaffinity(0)) as workers:\n"
        "    results = [workers.submit(os.getpid)]\n"
        "    while not results[0].done():\n"
        "        os.killpg(0, signal.SIGINT)\n"
        "        time.sleep(0.001)\n"
        "    print(results[0].result() != os.getpid())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, start_new_session=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_they_use_the_cores_that_they_are_given() -> None:
    with SyntaxWorkers(count=1, cores={min(CORES)}) as workers:
        assert workers.submit(os.sched_getaffinity, 0).result() == {min(CORES)}


def test_idle_ones_run_where_nothing_else_does_and_give_up_at_their_end() -> None:
    with SyntaxWorkers(count=1, cores=CORES, idle=True) as workers:
        assert workers.submit(os.sched_getscheduler, 0).result(600) == os.SCHED_IDLE
        endless = [workers.submit(time.sleep, 3600) for _ in range(40)]
        began = time.monotonic()
    assert time.monotonic() - began < 60
    assert all(each.cancelled() for each in endless)
