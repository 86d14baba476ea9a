"""Runs whose engine fails: they reach their budget, and nothing is doubled or lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command import (
    SECONDS,
    assert_complete,
    processes_in,
    read_events,
    read_summary,
    run,
)

from engine.core import Direction
from engine.store import read_log, replay

CANDIDATES = 12
FAULTY = Path(__file__).with_name("faulty.py")
SITE = Path(__file__).with_name("faulty_site")

pytestmark = pytest.mark.slow


def faulty(
    fault: str, first: int, *arguments: str, folder: Path, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run a run whose engine has a fault from its forward pass ``first`` on; see ``faulty.py``."""
    scratch = folder / "scratch"
    scratch.mkdir()
    common = ["problem=signal", "seed=3", "islands.count=2", "search.k=4", "fill=none"]
    places = [f"runs={folder}", "name=faulty", f"budget.candidates={CANDIDATES}"]
    return subprocess.run(
        [sys.executable, str(FAULTY), fault, str(first), *common, *places, *arguments],
        capture_output=True,
        text=True,
        timeout=3 * SECONDS,
        cwd=scratch,
        env={**os.environ, "TMPDIR": str(scratch), **environ},
    )


def first_is_faulty(fault: str, first: int, *, folder: Path) -> dict[str, str]:
    """Return the environment in which the first process with an engine has a fault."""
    return {
        **os.environ,
        "PYTHONPATH": f"{SITE}:{SITE.parent}",
        "BROOD_TEST_FAULT": f"{fault}:{first}:{folder / 'faulty-process'}",
    }


def assert_whole(folder: Path) -> None:
    """Assert that a run is complete, that its log replays, and that nothing is left of it."""
    assert_complete(folder, candidates=CANDIDATES)
    assert replay(read_log(folder), Direction.MAXIMISE).admitted == CANDIDATES
    assert processes_in(folder.parent / "scratch") == []


def test_a_run_in_which_the_fifth_step_fails_reaches_its_budget_exactly(tmp_path: Path) -> None:
    done = faulty("raise", 5, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert_whole(tmp_path / "faulty")
    (line,) = [line for line in done.stderr.splitlines() if "injected" in line]
    assert "it is loaded again" in line and "Traceback" not in done.stderr
    assert read_summary(tmp_path / "faulty")["sessions"] == 1
    assert "failed" not in read_summary(tmp_path / "faulty")["refused"]


def test_a_run_with_a_call_that_the_engine_fails_on_gives_that_up_and_no_other(
    tmp_path: Path,
) -> None:
    done = faulty("poison", 20, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert_whole(tmp_path / "faulty")
    events = read_events(tmp_path / "faulty")
    given_up = [child for child in events["child"] if child["refusal"] == "failed"]
    assert {child["finish_reason"] for child in given_up} == {"error"}
    prompts = {call["iteration"]: call["prompt"] for call in events["call"]}
    assert len({prompts[child["iteration"]] for child in given_up}) == 1


def test_a_run_whose_step_hangs_goes_on_by_itself_in_a_new_process(tmp_path: Path) -> None:
    done = faulty("hang", 12, "model.step_seconds=60", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert_whole(tmp_path / "faulty")
    assert read_summary(tmp_path / "faulty")["sessions"] == 2
    said = (
        "the model is lost: a step of the engine has lasted longer than 60 s (model.step_seconds)"
    )
    assert said in done.stderr.splitlines()
    assert "going on in a new process" in done.stderr and "Traceback" not in done.stderr


def test_a_run_that_new_processes_do_not_help_ends_in_a_line_and_can_be_resumed(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "faulty"
    done = faulty("always", 1, folder=tmp_path, BROOD_FRUITLESS="2")
    assert done.returncode == 75, done.stderr
    assert "the model is lost: the engine fails on any prompt: RuntimeError" in done.stderr
    assert f"go on with: python -m engine.run resume={folder}" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert read_summary(folder)["ended_by"] is None
    assert read_events(folder)["child"] == []
    again = run(f"resume={folder}", scratch=tmp_path / "scratch")
    assert again.returncode == 0, again.stderr
    assert_whole(folder)


def test_a_sweep_whose_model_is_lost_goes_on_in_another_process(tmp_path: Path) -> None:
    sweep = ["--multirun", "seed=1,2", f"runs={tmp_path}", "name=all"]
    own = ["problem=signal", "fill=none", "islands.count=2", "search.k=4"]
    own += [f"budget.candidates={CANDIDATES}", "model.step_seconds=60"]
    done = subprocess.run(
        [sys.executable, "-m", "engine.run", *sweep, *own],
        capture_output=True,
        text=True,
        timeout=3 * SECONDS,
        env=first_is_faulty("hang", 12, folder=tmp_path),
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("the model is lost") == 1 and "Traceback" not in done.stderr
    runs = sorted(path for path in (tmp_path / "all").iterdir() if path.is_dir())
    assert [read_summary(run)["sessions"] for run in runs] == [2, 1]
    for each in runs:
        assert_complete(each, candidates=CANDIDATES)
    (row,) = json.loads((tmp_path / "all" / "comparison.json").read_text())
    assert row["runs"] == "2/2"


def test_a_worker_whose_model_is_lost_is_replaced(tmp_path: Path) -> None:
    own = ["problem=signal", "fill=none", f"runs={tmp_path}", "name=run", "budget.seconds=null"]
    small = ["islands.count=2", "search.k=4", f"budget.candidates={CANDIDATES}"]
    cluster = ["cluster=ray", "cluster.workers=1", "evaluation.workers=1"]
    done = subprocess.run(
        [sys.executable, "-m", "engine.run", *own, *small, *cluster, "model.step_seconds=60"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=3 * SECONDS,
        env=first_is_faulty("hang", 12, folder=tmp_path),
    )
    assert done.returncode == 0, done.stdout
    (line,) = [line for line in done.stdout.splitlines() if "a worker is lost" in line]
    assert "model.step_seconds" in line
    assert f"{CANDIDATES} candidates evaluated" in done.stdout
    islands = json.loads((tmp_path / "run" / "summary.json").read_text())["islands"]
    assert sum(each["candidates"] for each in islands) == CANDIDATES
