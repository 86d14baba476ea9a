"""The pool itself: order, losses, closing, and that no process outlives it."""

import dataclasses
import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hostile import ENDLESS, SLOW, collect
from processes import children, command, descendants, entries, eventually, zygotes
from verdicts import evaluate

from engine.core import ArraySpec, Evaluation, Failure, Limits, Outputs, Problem, Stage, UserError
from engine.evaluation import EvaluatorPool
from engine.evaluation.lane import Lane

WHERE = """
import os
def double(values, offset):
    print(os.getpid(), sorted(os.sched_getaffinity(0)))
    return 2 * values, 4
"""


@pytest.fixture(scope="module")
def pair(double: Problem) -> Iterator[EvaluatorPool]:
    """Two workers, with much time; tests leave nothing in flight and nobody to be told."""
    limits = Limits(seconds=30, memory_bytes=256 << 20)
    with EvaluatorPool(problem=dataclasses.replace(double, limits=limits), workers=2) as pool:
        yield pool


def test_lower_orders_run_first_and_equal_ones_as_they_were_queued(
    pool: EvaluatorPool, double: Problem
) -> None:
    busy = SLOW.replace("0.3", "2")  # seconds for each case, in which the others come
    pool.submit(candidate_id="first", program=busy, order=-2)
    for name, order in (("last", 2), ("b", 1), ("c", 1), ("a", -1)):
        pool.submit(candidate_id=name, program=double.initial_program, order=order)
    assert list(collect(pool)) == ["first", "a", "b", "c", "last"]


def test_verdicts_come_back_under_their_ids(pair: EvaluatorPool, double: Problem) -> None:
    assert pair.completed(timeout=None) == []
    for i in range(20):
        good = i % 2 == 0
        pair.submit(candidate_id=str(i), program=double.initial_program if good else "x = y")
    assert pair.in_flight == 20
    found = collect(pair)
    assert found == {str(i): 1.0 if i % 2 == 0 else Failure.ERROR for i in range(20)}


def test_completed_waits_no_longer_than_told(pair: EvaluatorPool, double: Problem) -> None:
    text = f"import time\ntime.sleep(2)\n{double.initial_program}"
    pair.submit(candidate_id="slow", program=text)
    assert pair.completed(timeout=0.05) == []
    assert [name for name, _ in pair.completed(timeout=None)] == ["slow"]
    assert pair.in_flight == 0


def test_each_verdict_is_announced_when_it_can_be_taken(
    pair: EvaluatorPool, double: Problem
) -> None:
    """By the next call of `completed`: who waits for the announcement misses none."""
    announced: list[str] = []
    rung, found = threading.Semaphore(0), dict[str, Evaluation]()

    def announce() -> None:
        announced.append(threading.current_thread().name)
        rung.release()

    pair.announce_to(announce)
    for i in range(12):
        pair.submit(candidate_id=str(i), program=double.initial_program)
    for _ in range(12):  # an announcement may come after its verdict was taken, never before
        assert rung.acquire(timeout=30)
        found.update(pair.completed(timeout=0))
    assert len(announced) == len(found) == 12
    assert threading.current_thread().name not in announced
    pair.announce_to(rung.release)  # somebody else, from now on
    pair.submit(candidate_id="last", program="x = y")
    assert rung.acquire(timeout=30)
    assert [name for name, _ in pair.completed(timeout=0)] == ["last"]
    assert len(announced) == 12


def test_ctrl_c_at_the_terminal_does_not_reach_zygotes(pair: EvaluatorPool) -> None:
    pair.check_walls(strict=False)  # so they have started
    assert all(os.getsid(zygote) != os.getsid(0) for zygote in zygotes(os.getpid()))


def test_programs_are_bound_to_the_core_of_their_worker(double: Problem) -> None:
    available = sorted(os.sched_getaffinity(0))
    with EvaluatorPool(problem=double, workers=1, cores=[available[0]]) as pool:
        seen = evaluate(pool, WHERE).artifacts["stdout"].splitlines()
    assert [line.partition(" ")[2] for line in seen] == [f"[{available[0]}]"] * 2
    assert sorted(os.sched_getaffinity(0)) == available  # ours is as it was


def test_every_worker_has_a_core_of_its_own(pair: EvaluatorPool) -> None:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("one core")
    wait = WHERE.replace("print", "import time; time.sleep(0.2); print")
    pair.check_walls(strict=False)
    for index in range(6):
        pair.submit(candidate_id=str(index), program=wait)
    seen = set()
    while pair.in_flight:
        for _, evaluation in pair.completed(timeout=30):
            seen.add(evaluation.artifacts["stdout"].split("\n")[0].partition(" ")[2])
    assert seen <= {f"[{core}]" for core in cores} and len(seen) == 2


def test_closing_stops_everything(double: Problem, new_zygotes: Callable[[], list[int]]) -> None:
    threads, descriptors = threading.active_count(), entries("/proc/self/fd")
    pool = EvaluatorPool(problem=double, workers=2)
    evaluate(pool, double.initial_program)
    for i in range(5):
        pool.submit(candidate_id=str(i), program=SLOW)
    below = [pid for zygote in new_zygotes() for pid in (zygote, *descendants(zygote))]
    pool.close()
    pool.close()
    assert below and new_zygotes() == []
    assert eventually(lambda: not any(map(command, below)))
    # What other tests left may go meanwhile.
    assert threading.active_count() <= threads
    assert entries("/proc/self/fd") <= descriptors
    assert pool.in_flight == 0 and pool.completed(timeout=None) == []
    with pytest.raises(RuntimeError, match="closed"):
        pool.submit(candidate_id="late", program=SLOW)


def test_closing_does_not_wait_for_zygotes_that_never_start(
    double: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = tmp_path / "python"
    never.write_text("#!/bin/sh\nexec sleep 1000\n")
    never.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(never))
    before = {*children(os.getpid())}
    pool = EvaluatorPool(problem=double, workers=2)
    assert eventually(lambda: len({*children(os.getpid())} - before) == 2)
    closing = threading.Thread(target=pool.close)
    closing.start()
    closing.join(timeout=60)
    assert not closing.is_alive()
    assert {*children(os.getpid())} <= before


def test_closing_wakes_the_one_who_waits(double: Problem) -> None:
    limits = Limits(seconds=60, memory_bytes=256 << 20)
    pool = EvaluatorPool(problem=dataclasses.replace(double, limits=limits), workers=1)
    evaluate(pool, double.initial_program)
    pool.submit(candidate_id="endless", program=ENDLESS)
    found: list[object] = []
    waiting = threading.Thread(target=lambda: found.append(pool.completed(timeout=None)))
    waiting.start()
    pool.close()
    waiting.join(timeout=50)
    assert found == [[]]


def test_a_killed_main_process_leaves_no_process_and_the_next_pool_removes_its_files(
    double: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "import sys, dataclasses\nfrom pathlib import Path\n"
        "from engine.core import Limits\n"
        "from engine.evaluation import EvaluatorPool\nfrom engine.problem import load_problem\n"
        "problem = load_problem(Path(sys.argv[1]))\n"
        "limits = Limits(seconds=60, memory_bytes=1 << 28)\n"
        "problem = dataclasses.replace(problem, limits=limits)\n"
        "pool = EvaluatorPool(problem=problem, workers=1)\n"
        "pool.submit(candidate_id='endless', program=sys.argv[2])\n"
        "pool.completed(timeout=None)\n"
    )
    main = subprocess.Popen(
        [sys.executable, "-c", script, str(double.folder), ENDLESS],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        cwd=Path(__file__).parents[2],
    )
    try:
        assert eventually(lambda: len(descendants(main.pid)) == 2)
        below = descendants(main.pid)
    finally:
        main.kill()
        main.wait()
    assert eventually(lambda: not any(map(command, below)))
    left = set(tmp_path.iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with EvaluatorPool(problem=double, workers=1), EvaluatorPool(problem=double, workers=1):
        in_use = set(tmp_path.iterdir())
    assert (len(left), len(in_use), len(left & in_use)) == (1, 2, 0)
    assert list(tmp_path.iterdir()) == []


def screened(problem: Problem) -> Problem:
    """Return ``problem`` with a cheap stage of one case in front, whose score is its count."""

    def score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
        (output,) = outputs
        return {"score": float(output["count"])}

    stage = Stage(name="cheap", cases=problem.cases[1:], score=score)
    return dataclasses.replace(problem, stages=(stage, *problem.stages))


def test_each_stage_has_its_own_cases_and_score(double: Problem) -> None:
    text = "def double(values, offset):\n    print(values[0])\n    return 2 * values, 4\n"
    with EvaluatorPool(problem=screened(double), workers=1) as pool:
        for name, stage in (("cheap", 0), ("full", 1), ("default", None)):
            pool.submit(candidate_id=name, program=text, stage=stage)
        found: dict[str, Evaluation] = {}
        while pool.in_flight:
            found.update(pool.completed(timeout=30))
        assert evaluate(pool, text).score == 1.0
    assert {name: each.score for name, each in found.items()} == {
        "cheap": 4.0,
        "full": 1.0,
        "default": 1.0,
    }
    assert found["cheap"].artifacts["stdout"] == "0.5\n"
    assert found["full"].artifacts["stdout"] == "1.0\n0.5\n"


def test_a_missing_wall_is_told_or_refused(
    double: Problem, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with EvaluatorPool(problem=double, workers=1) as pool:
        # What a machine lacks can't be taken from this one; what is made of it can be shown.
        monkeypatch.setattr(Lane, "wait_walls", lambda self: {"files": "the kernel has none"})
        with caplog.at_level(logging.INFO, logger="engine.evaluation"):
            pool.check_walls(strict=False)
        assert "the sandbox lacks a wall, files: the kernel has none" in caplog.text
        assert "walls of the sandbox: calls, network, mounts, limits" in caplog.text
        with pytest.raises(UserError, match=r"files: the kernel has none.*evaluation.strict=false"):
            pool.check_walls(strict=True)


def test_standing_walls_pass_the_strict_check(
    pool: EvaluatorPool, missing_walls: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    if missing_walls:
        pytest.skip(f"this machine lacks {missing_walls}")
    with caplog.at_level(logging.INFO, logger="engine.evaluation"):
        pool.check_walls(strict=True)
    assert "walls of the sandbox: files, calls, network, mounts, limits" in caplog.text


def test_workers_do_not_load_the_model_stack(pool: EvaluatorPool, double: Problem) -> None:
    text = "import sys\nprint({'torch', 'vllm', 'transformers'} & set(sys.modules))\n"
    evaluation = evaluate(pool, text + double.initial_program)
    assert evaluation.artifacts["stdout"] == "set()\n"


def test_a_worker_that_cannot_start_is_an_error_and_no_verdict(
    double: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with (
        EvaluatorPool(problem=double, workers=1) as pool,
        pytest.raises(UserError, match=r"^evaluator: a sandbox did not start"),
    ):
        evaluate(pool, double.initial_program)
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with (
        EvaluatorPool(problem=double, workers=1) as pool,
        pytest.raises(UserError, match=r"^evaluator: a sandbox did not start: .*/no/such/python"),
    ):
        evaluate(pool, double.initial_program)


def test_a_pool_needs_a_worker(double: Problem) -> None:
    with pytest.raises(UserError, match="1 or more"):
        EvaluatorPool(problem=double, workers=0)


@pytest.mark.parametrize("dtype", ["object", "complex128", "U3", "no such type"])
def test_a_case_that_cannot_be_checked_is_refused(double: Problem, dtype: str) -> None:
    case = dataclasses.replace(
        double.cases[0], outputs={"doubled": ArraySpec(shape=(4,), dtype=dtype)}
    )
    stage = dataclasses.replace(double.stages[0], cases=(case,))
    with pytest.raises(UserError, match=r"evaluator\.py"):
        EvaluatorPool(problem=dataclasses.replace(double, stages=(stage,)), workers=1)
