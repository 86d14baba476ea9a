"""Processes that are stopped and continued: no program pays for the time in which they stood."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from command import SECONDS, assert_complete, count_events, start, wait_until
from events import PLAIN
from processes import children, descendants, eventually

CANDIDATES = 300  # many, so that the run goes on when it is looked at
DOUBLE = Path(__file__).parents[1] / "evaluation/problems/double"
POOL = """
import sys
from dataclasses import replace
from pathlib import Path
from engine.core import Limits
from engine.evaluation import open_pool
from engine.problem import load_problem
from judges import problem_of

# They sleep once, for most of the time that they have, and are to be found asleep.
SECONDS = 8.0
SLOW = "import time\\ntime.sleep(1.5)\\ndef double(values, offset): return 2 * values, 4\\n"
JUDGE = "import time\\ntime.sleep(1.5)\\nprint('{\\"score\\": 1.0}')\\n"


def problem_and_program(folder):
    if (folder / "problem.yaml").exists():
        limits = Limits(seconds=SECONDS, memory_bytes=256 << 20)
        return replace(load_problem(folder), limits=limits), SLOW
    return problem_of(folder, JUDGE, seconds=SECONDS), "1\\n"


problem, program = problem_and_program(Path(sys.argv[1]))
with open_pool(problem=problem, workers=1) as pool:
    pool.check_walls(strict=False)
    print("warm", flush=True)
    pool.submit(candidate_id="slow", program=program)
    ((_, evaluation),) = pool.completed(timeout=None)
    print(evaluation.score, evaluation.message, evaluation.seconds < SECONDS, flush=True)
    sys.stdin.readline()
"""


def stopped(process: int) -> list[int]:
    """Stop a process and all below it, and return them, parents first.

    Until it stands, a zygote ends children and forks new ones.
    """
    every: list[int] = []
    while new := [each for each in (process, *descendants(process)) if each not in every]:
        for each in new:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGSTOP)
        every += new
    return every


def continued(processes: list[int]) -> None:
    for each in processes[::-1]:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGCONT)


@pytest.mark.parametrize(
    ("kind", "seconds"),
    [("zygote", 8.5), ("box", 8.5)],
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
        every = stopped(process.pid)
        time.sleep(seconds)  # longer than the program has, and the pool's patience with a zygote
        continued(every)
        assert process.stdout.readline() == "1.0  True\n"
        # None was given up either; one look may miss a process.
        assert eventually(lambda: children(process.pid) == servers)
        process.stdin.write("\n")
        process.communicate(timeout=SECONDS)
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
        *(*PLAIN, f"budget.candidates={CANDIDATES}", f"runs={tmp_path}", "name=run"),
        scratch=tmp_path / "scratch",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: count_events(tmp_path / "run") >= 12 or process.poll() is not None)
    assert process.poll() is None
    every = stopped(process.pid)
    time.sleep(2.5)
    continued(every)
    _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said
    assert_complete(tmp_path / "run", candidates=CANDIDATES)
