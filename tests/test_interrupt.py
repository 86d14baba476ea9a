"""SIGTERM at any time: the exit code of Ctrl-C, and nothing left behind but a run's folder."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from command import SECONDS, count_events, processes_in, read_summary, start, wait_until

from engine.problem import shipped

ENDLESS = ("model=mutation", "fill=none", "budget.candidates=null", "budget.seconds=600")


def ended(process: subprocess.Popen[str], *signals: signal.Signals) -> tuple[int, str]:
    """Send signals to a process; return its exit code and what it wrote."""
    try:
        for each in signals:
            process.send_signal(each)
        said, _ = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    return process.returncode, said


def test_sigterm_while_a_run_begins_leaves_nothing(tmp_path: Path) -> None:
    scratch, problem = tmp_path / "scratch", tmp_path / "problem"
    shutil.copytree(shipped()["signal"], problem)
    initial = (problem / "initial.py").read_text()
    (problem / "initial.py").write_text(f"import time\ntime.sleep(4)\n{initial}")
    process = start(
        *(f"problem.path={problem}", f"runs={tmp_path / 'runs'}", *ENDLESS),
        scratch=scratch,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    evaluators = "brood-workers-*/worker-0"
    wait_until(lambda: len(processes_in(scratch)) > 1 and [*scratch.glob(evaluators)] != [])
    code, said = ended(process, signal.SIGTERM)
    assert (code, said.startswith("interrupted; ")) == (130, True), said
    assert list(scratch.iterdir()) == []
    assert processes_in(scratch) == []
    assert not (tmp_path / "runs").exists()


def test_sigterm_that_comes_twice_at_once_ends_a_run_in_good_order(tmp_path: Path) -> None:
    scratch, folder = tmp_path / "scratch", tmp_path / "run"
    process = start(
        *(*ENDLESS, f"runs={tmp_path}", "name=run"),
        scratch=scratch,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    wait_until(lambda: count_events(folder) >= 12 or process.poll() is not None)
    code, said = ended(process, signal.SIGTERM, signal.SIGTERM)
    assert code == 130 and f"resume={folder}" in said, said
    assert read_summary(folder)["candidates"] > 0
    assert list(scratch.iterdir()) == []
    assert processes_in(scratch) == []


@pytest.mark.slow
def test_sigterm_to_a_sweep_ends_its_run_in_good_order_and_begins_no_other(tmp_path: Path) -> None:
    scratch, first = tmp_path / "scratch", tmp_path / "sweep" / "seed=0"
    process = start(
        *("--multirun", "seed=0,1", *ENDLESS, f"runs={tmp_path}", "name=sweep"),
        scratch=scratch,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    wait_until(lambda: count_events(first) >= 12 or process.poll() is not None)
    code, said = ended(process, signal.SIGTERM)
    assert code == 130 and f"resume={first}" in said, said
    assert read_summary(first)["candidates"] > 0
    assert [path.name for path in first.parent.iterdir() if path.is_dir()] == ["seed=0"]
    assert f"resume={first.parent}\n" in said
    assert list(scratch.iterdir()) == []
    assert processes_in(scratch) == []
