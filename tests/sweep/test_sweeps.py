"""Sweeps, with the mutations as a model: what they leave, and how they go on."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command import (
    SECONDS,
    assert_complete,
    count_events,
    processes_in,
    read_events,
    run,
    start,
    wait_until,
)
from servers import Server

from engine.core import UserError
from engine.problem import shipped
from engine.store import read_log
from engine.sweep import plan, read_sweep, run_all
from engine.sweep.process import grouped

# A fill that is first with a program makes the same child of an iteration a duplicate: no fill.
MUTATION = (
    "problem=signal",
    "model=mutation",
    "fill=none",
    "evaluation.workers=1",
    "pipeline.overlap=false",
    "budget.seconds=null",
)


def arguments(tmp_path: Path, *more: str, candidates: int | str = 6) -> list[str]:
    place = (f"runs={tmp_path}", "name=sweep", f"budget.candidates={candidates}")
    return ["--multirun", *MUTATION, *place, *more]


def folders(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "sweep").iterdir() if path.is_dir())


def children(folder: Path) -> list[tuple[str, str | None, str]]:
    """Return what a run's children are, without what was measured."""
    return [
        (each["id"], each["refusal"], json.dumps(each["program"]))
        for each in read_events(folder)["child"]
    ]


def test_a_sweep_compares_its_runs_and_none_knows_of_another(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    given = arguments(tmp_path, "search.k=2,4", "seed=0,1")
    done = run(*given, scratch=scratch)
    assert done.returncode == 0, done.stderr
    assert folders(tmp_path) == [f"search.k={k}_seed={seed}" for k in (2, 4) for seed in (0, 1)]
    for name in folders(tmp_path):
        assert_complete(tmp_path / "sweep" / name, candidates=6)
    assert "run 1 of 4: search.k=2_seed=0" in done.stdout
    assert "run 4 of 4: search.k=4_seed=1, the last one" in done.stdout
    rows = json.loads((tmp_path / "sweep" / "comparison.json").read_text())
    assert [(row["search.k"], row["runs"], row["candidates"]) for row in rows] == [
        ("2", "2/2", 6),
        ("4", "2/2", 6),
    ]
    assert all(row["lowest"] <= row["best_score"] <= row["highest"] for row in rows)
    # The last of them is what it is alone.
    alone = [each for each in arguments(tmp_path, "search.k=4", "seed=1") if each != "--multirun"]
    done = run(*alone, "name=alone", scratch=scratch)
    assert done.returncode == 0, done.stderr
    assert children(tmp_path / "alone") == children(tmp_path / "sweep" / "search.k=4_seed=1")
    # Once more, and there is nothing left to do.
    again = run(*given, scratch=scratch)
    assert again.returncode == 0 and "4 of 4 runs are done" in again.stderr
    assert again.stdout.endswith(f"The runs are in {tmp_path / 'sweep'}\n")


@pytest.mark.parametrize("way", ["the same command", "resume"])
def test_a_sweep_that_was_killed_goes_on(tmp_path: Path, way: str) -> None:
    """The second run is long: a busy machine must not end it before it is seen and killed."""
    wanted = {f"budget.candidates={each}": each for each in (40, 300, 41)}
    names = [*wanted]
    scratch, second = tmp_path / "scratch", tmp_path / "sweep" / names[1]
    given = arguments(tmp_path, candidates="40,300,41")
    process = start(*given, scratch=scratch, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: count_events(second) >= 20 or process.poll() is not None)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    wait_until(lambda: processes_in(scratch) == [])  # its own process ends in good order
    assert folders(tmp_path) == sorted(names[:2])
    goes_on = given if way == "the same command" else [f"resume={tmp_path / 'sweep'}"]
    done = run(*goes_on, scratch=scratch)
    assert done.returncode == 0, done.stderr
    assert "1 of 3 runs are done" in done.stderr
    for name, candidates in wanted.items():
        assert_complete(tmp_path / "sweep" / name, candidates=candidates)
    assert len(read_events(second)["session"]) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_sweep_that_is_asked_to_end_does_so_in_good_order(tmp_path: Path, number: int) -> None:
    scratch, first = tmp_path / "scratch", tmp_path / "sweep" / "seed=0"
    process = start(
        *arguments(tmp_path, "seed=0,1", candidates=1000),
        scratch=scratch,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    wait_until(lambda: count_events(first) >= 20 or process.poll() is not None)
    process.send_signal(number)
    said, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 130, said
    assert f"resume={first}\n" in said and f"resume={tmp_path / 'sweep'}\n" in said
    assert folders(tmp_path) == ["seed=0"]
    assert processes_in(scratch) == [] and list(scratch.iterdir()) == []


def test_a_sweep_whose_output_nobody_reads_makes_its_runs(tmp_path: Path) -> None:
    """The line with a run's place ended that run before it began, without a word."""
    process = start(
        *arguments(tmp_path, "seed=0,1"),
        scratch=tmp_path / "scratch",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()  # as in ``| true``
    said = process.stderr.read()
    assert process.wait(timeout=SECONDS) == 0, said
    # The sweep's process says it, and that of its runs.
    assert said.count("the output can't be written: Broken pipe") == 2 and "Traceback" not in said
    for seed in (0, 1):
        assert_complete(tmp_path / "sweep" / f"seed={seed}", candidates=6)


def test_one_run_that_cannot_begin_leaves_the_others(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    for each in (good, bad):
        shutil.copytree(shipped()["signal"], each)
    (bad / "initial.py").write_text("def run_signal_processing(signal, window_size):\n    return\n")
    given = [each for each in arguments(tmp_path) if each != "problem=signal"]
    done = run(*given, f"problem.path={bad},{good}", scratch=tmp_path / "scratch")
    assert done.returncode == 2
    assert "initial.py:1: the initial program of bad fails" in done.stderr
    (row,) = json.loads((tmp_path / "sweep" / "comparison.json").read_text())
    assert row["problem.path"] == str(good)


def test_a_sweep_of_which_no_run_begins_leaves_nothing(tmp_path: Path) -> None:
    shutil.copytree(shipped()["signal"], bad := tmp_path / "bad")
    (bad / "evaluator.py").unlink()
    given = [each for each in arguments(tmp_path) if each != "problem=signal"]
    done = run(*given, f"problem.path={bad}", "seed=0,1", scratch=tmp_path / "scratch")
    assert done.returncode == 2
    assert done.stderr.count("has no evaluator.py") == 2
    assert not (tmp_path / "sweep").exists()


def test_a_run_that_lost_its_model_and_then_dies_otherwise_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep's processes are a script: the first loses its model, the second dies."""
    begun, python = tmp_path / "begun", tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\necho "$@" >> {begun}\n'
        f"case $(wc -l < {begun}) in 1) exit 75;; 2) exit 1;; esac\n"
        'echo 0 > "/proc/self/fd/$5"\n'  # $5 is where the runs' exit codes go
    )
    python.chmod(0o755)
    sweep = plan(arguments(tmp_path, "seed=0,1")[1:])
    monkeypatch.setattr(sys, "executable", str(python))
    assert run_all(sweep) == 1
    assert [line.split()[5:] for line in begun.read_text().splitlines()] == [
        ["seed=0", "seed=1"],
        ["seed=0", "seed=1"],
        ["seed=1"],
    ]


def test_another_sweep_of_the_same_name_is_refused(tmp_path: Path) -> None:
    given = arguments(tmp_path, "seed=0,1")[1:]
    plan(given).write()
    assert plan(given) == read_sweep(tmp_path / "sweep")
    with pytest.raises(UserError, match=r"it is another sweep, which resume=.*sweep goes on with"):
        plan([*given, "search.k=3"])
    (tmp_path / "other").mkdir()
    with pytest.raises(UserError, match="other exists; give another name="):
        plan([*given, "name=other"])


def test_runs_of_one_name_in_two_sweeps_share_a_server(tmp_path: Path, server: Server) -> None:
    for name in ("one", "two"):
        given = arguments(tmp_path, f"name={name}", f"store={server.url}", candidates=1)
        done = run(*given, scratch=tmp_path / "scratch")
        assert done.returncode == 0, done.stderr
    schemas = {name for (name,) in server.sql("SELECT nspname FROM pg_namespace")}
    assert {"one/only", "two/only"} <= schemas
    assert sum(1 for _ in read_log(tmp_path / "two" / "only")) > 2


def test_a_sweep_on_a_cluster_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cluster is ray, and a run of a sweep .* in one process"):
        plan([*arguments(tmp_path)[1:], "cluster=none,ray"])
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("text", ["", "runs: 3", "runs: []", "runs: [{name: a}]", "{", "\0"])
def test_a_damaged_file_is_a_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "sweep.yaml").write_text(text)
    with pytest.raises(UserError, match=r"sweep\.yaml (can't be read|names no run)"):
        read_sweep(tmp_path)


def test_runs_share_a_process_where_nothing_can_leak(tmp_path: Path) -> None:
    def names(*more: str) -> list[list[str]]:
        sweep = plan([f"runs={tmp_path}", "name=s", *more])
        return [[each.name for each in group] for group in grouped(sweep.runs)]

    assert names("seed=0,1", "search.k=2,4") == [
        ["seed=0_search.k=2", "seed=0_search.k=4", "seed=1_search.k=2", "seed=1_search.k=4"]
    ]
    assert names("seed=0,1", "learning=grpo,none") == [
        ["seed=0_learning=grpo"],
        ["seed=0_learning=none", "seed=1_learning=none"],
        ["seed=1_learning=grpo"],
    ]
    assert names("seed=0,1", "cache=lmcache") == [["seed=0"], ["seed=1"]]
    assert names("seed=0,1", "method=pacevolve") == [["seed=0"], ["seed=1"]]
    assert len(names("model.max_tokens=64,65")) == len(names("evaluation.workers=1,2")) == 2
