"""Processes that are stopped and continued: no program pays for the time in which they stood."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import assert_complete, count_events, start, wait_until
from events import PLAIN
from processes import children, descendants

DOUBLE = Path(__file__).parents[1] / "evaluation/problems/double"
"""It gives a program a second."""
POOL = """
import sys
from pathlib import Path
from engine.evaluation import open_pool
from engine.problem import load_problem
from judges import problem_of

SLOW = "import time\\ndef double(values, offset):\\n time.sleep(0.7)\\n return 2 * values, 4\\n"
JUDGE = "import time\\ntime.sleep(0.7)\\nprint('{\\"score\\": 1.0}')\\n"


def problem_and_program(folder):
    if (folder / "problem.yaml").exists():
        return load_problem(folder), SLOW
    return problem_of(folder, JUDGE, seconds=1.0), "1\\n"


problem, program = problem_and_program(Path(sys.argv[1]))
with open_pool(problem=problem, workers=1) as pool:
    pool.check_walls(strict=False)
    print("warm", flush=True)
    pool.submit(candidate_id="slow", program=program)
    ((_, evaluation),) = pool.completed(timeout=None)
    print(evaluation.score, evaluation.message, evaluation.seconds < 2.0, flush=True)
    sys.stdin.readline()
"""


def signalled(processes: list[int], number: signal.Signals) -> None:
    for each in processes:
        os.kill(each, number)


@pytest.mark.parametrize(
    ("kind", "seconds"),
    [("zygote", 3.0), ("box", 3.0), pytest.param("zygote", 8.0, marks=pytest.mark.slow)],
)
def test_a_program_has_its_time_though_all_stood_still(
    tmp_path: Path, kind: str, seconds: float
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", POOL, str(DOUBLE if kind == "zygote" else tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(DOUBLE.parents[1])},
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        assert process.stdout.readline() == "warm\n"
        servers = children(process.pid)
        wait_until(lambda: any(map(is_asleep_in_a_program, descendants(process.pid))))
        every = [process.pid, *descendants(process.pid)]
        signalled(every, signal.SIGSTOP)
        time.sleep(seconds)  # longer than the program has, and the pool's patience with a zygote
        signalled(every[::-1], signal.SIGCONT)
        assert process.stdout.readline() == "1.0  True\n"
        assert children(process.pid) == servers  # none was given up either
        process.stdin.write("\n")
        process.communicate(timeout=60)
    finally:
        process.kill()


def is_asleep_in_a_program(process: int) -> bool:
    """Whether a process sleeps for a time, as no other of a zygote's children does."""
    try:
        call = Path(f"/proc/{process}/syscall").read_text().split()[0]
    except OSError:
        return False
    return call in ("230", "115", "35", "101")  # (clock_)nanosleep on x86_64 and aarch64


def test_a_run_that_stood_still_goes_on(tmp_path: Path) -> None:
    process = start(
        *(*PLAIN, "budget.candidates=24", f"runs={tmp_path}", "name=run"),
        scratch=tmp_path / "scratch",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: count_events(tmp_path / "run") >= 12 or process.poll() is not None)
    every = [process.pid, *descendants(process.pid)]
    signalled(every, signal.SIGSTOP)
    time.sleep(2.5)
    signalled(every[::-1], signal.SIGCONT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert_complete(tmp_path / "run", candidates=24)
