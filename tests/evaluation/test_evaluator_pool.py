"""The pool itself: order, losses, closing, and that no process outlives it."""

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.core import ArraySpec, Failure, Problem, UserError
from engine.evaluation import EvaluatorPool

WORKER = "engine.evaluation.worker"
SLOW = "import time\ndef double(values, offset):\n    time.sleep(0.3)\n    return 2 * values, 4\n"
ENDLESS = "while True: pass\n"


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def children(pid: int) -> list[int]:
    """Return the workers that process ``pid`` started."""
    text = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    ).stdout
    return [int(line) for line in text.split() if WORKER.encode() in command(int(line))]


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def collect(pool: EvaluatorPool) -> dict[str, object]:
    found: dict[str, object] = {}
    while pool.in_flight:
        for candidate_id, evaluation in pool.completed(timeout=30):
            assert candidate_id not in found
            found[candidate_id] = evaluation.failure or evaluation.score
    return found


def test_verdicts_come_back_under_their_ids(double: Problem) -> None:
    with EvaluatorPool(problem=double, workers=2) as pool:
        assert pool.completed(timeout=None) == []
        for i in range(20):
            good = i % 2 == 0
            pool.submit(candidate_id=str(i), program=double.initial_program if good else "x = y")
        assert pool.in_flight == 20
        assert pool.evaluate(double.initial_program).score == 1.0  # not mixed with the others
        found = collect(pool)
    assert found == {str(i): 1.0 if i % 2 == 0 else Failure.ERROR for i in range(20)}


def test_completed_waits_no_longer_than_told(double: Problem) -> None:
    with EvaluatorPool(problem=double, workers=1) as pool:
        pool.evaluate(double.initial_program)
        pool.submit(candidate_id="slow", program=SLOW)
        start = time.monotonic()
        assert pool.completed(timeout=0.05) == []
        assert time.monotonic() - start < 0.5
        assert [name for name, _ in pool.completed(timeout=None)] == ["slow"]
        assert pool.in_flight == 0


def test_a_worker_killed_from_outside_loses_no_candidate(double: Problem) -> None:
    with EvaluatorPool(problem=double, workers=1) as pool:
        pool.evaluate(double.initial_program)
        pool.submit(candidate_id="a", program=SLOW)
        pool.submit(candidate_id="b", program=SLOW)
        time.sleep(0.1)
        (worker,) = children(os.getpid())
        os.kill(worker, signal.SIGKILL)
        assert collect(pool) == {"a": 1.0, "b": 1.0}
        assert children(os.getpid()) != [worker]


def test_ctrl_c_at_the_terminal_does_not_reach_workers(double: Problem) -> None:
    with EvaluatorPool(problem=double, workers=1) as pool:
        pool.evaluate(double.initial_program)
        (worker,) = children(os.getpid())
        assert os.getsid(worker) != os.getsid(0)


def test_closing_stops_everything_at_once(
    double: Problem, processes_of: Callable[[str], list[int]]
) -> None:
    before = processes_of(WORKER)
    threads = threading.active_count()
    pool = EvaluatorPool(problem=double, workers=2)
    pool.evaluate(double.initial_program)
    for i in range(5):
        pool.submit(candidate_id=str(i), program=SLOW)
    time.sleep(0.1)
    pool.close()
    pool.close()
    assert processes_of(WORKER) == before
    assert threading.active_count() == threads
    assert pool.in_flight == 0 and pool.completed(timeout=None) == []
    assert pool.evaluate(double.initial_program).failure is Failure.CRASH
    with pytest.raises(RuntimeError, match="closed"):
        pool.submit(candidate_id="late", program=SLOW)


def test_closing_answers_those_who_wait(double: Problem) -> None:
    pool = EvaluatorPool(problem=double, workers=1)
    pool.evaluate(double.initial_program)
    verdicts = []
    waiting = [
        threading.Thread(target=lambda: verdicts.append(pool.evaluate(SLOW))) for _ in range(2)
    ]
    for thread in waiting:
        thread.start()
    time.sleep(0.1)
    pool.close()
    for thread in waiting:
        thread.join(timeout=10)
    assert [verdict.failure for verdict in verdicts] == [Failure.CRASH] * 2


def test_a_killed_main_process_leaves_no_process(double: Problem, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    text = (
        "import os, time\n"
        "if os.fork() == 0:\n    os.setsid()\n"
        f"open({str(seen)!r} + '/' + str(os.getpid()), 'w').close()\n"
        "while True: time.sleep(1)\n"
    )
    script = (
        "import sys, dataclasses\nfrom pathlib import Path\n"
        "from engine.core import Limits\n"
        "from engine.evaluation import EvaluatorPool\nfrom engine.problem import load_problem\n"
        "problem = load_problem(Path(sys.argv[1]))\n"
        "limits = Limits(seconds=60, memory_bytes=1 << 28)\n"
        "problem = dataclasses.replace(problem, limits=limits)\n"
        "EvaluatorPool(problem=problem, workers=1).evaluate(sys.argv[2])\n"
    )
    seen.mkdir()
    main = subprocess.Popen(
        [sys.executable, "-c", script, str(double.folder), text],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        cwd=Path(__file__).parents[2],
    )
    try:
        assert wait_until(lambda: len(list(seen.iterdir())) == 2)
        below = [*children(main.pid), *(int(path.name) for path in seen.iterdir())]
        assert len(below) == 3 and all(command(pid) for pid in below)
    finally:
        main.kill()
        main.wait()
    assert wait_until(lambda: not any(command(pid) for pid in below))


def test_workers_do_not_load_the_model_stack(double: Problem) -> None:
    text = "import sys\nprint({'torch', 'vllm', 'transformers'} & set(sys.modules))\n"
    with EvaluatorPool(problem=double, workers=1) as pool:
        evaluation = pool.evaluate(text + double.initial_program)
    assert evaluation.artifacts["stdout"] == "set()\n"


def test_a_worker_that_cannot_start_gives_a_verdict(
    double: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with EvaluatorPool(problem=double, workers=1) as pool:
        evaluation = pool.evaluate(double.initial_program)
    assert evaluation.failure is Failure.CRASH
    assert evaluation.message.startswith("evaluator: a worker did not start")
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with EvaluatorPool(problem=double, workers=1) as pool:
        evaluation = pool.evaluate(double.initial_program)
    assert evaluation.message == "evaluator: no worker process could be started"


def test_a_pool_needs_a_worker(double: Problem) -> None:
    with pytest.raises(UserError, match="1 or more"):
        EvaluatorPool(problem=double, workers=0)


@pytest.mark.parametrize("dtype", ["object", "complex128", "U3", "no such type"])
def test_a_case_that_cannot_be_checked_is_refused(double: Problem, dtype: str) -> None:
    case = dataclasses.replace(
        double.cases[0], outputs={"doubled": ArraySpec(shape=(4,), dtype=dtype)}
    )
    with pytest.raises(UserError, match=r"evaluator\.py"):
        EvaluatorPool(problem=dataclasses.replace(double, cases=(case,)), workers=1)
