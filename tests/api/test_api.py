"""The Python API: a search in a few lines, a problem of two functions, events as they come."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Problem, Run
from engine.core import INITIAL, ArraySpec, Case, Child, Rejected, UserError, Verdict
from engine.export import main as export_main
from engine.pool.runs import export
from engine.report.analysis import read_runs
from engine.report.tables import grouped_runs
from engine.run import main
from engine.store import read_log

START = """\
import numpy as np


def place():
    x = np.arange(4)
    return np.stack([0.1 * x, (0.3 * x) % 1.0], axis=1)
"""
QUICK: dict[str, Any] = {
    "model": "mutation",
    "evaluation": {"workers": 1},
    "budget": {"candidates": 12},
    "islands": {"count": 1},
}


def cases() -> list[Case]:
    return [Case(name="four points", args=(), outputs={"points": ArraySpec(shape=(4, 2))})]


def spread(outputs: Any) -> dict[str, float]:
    points = outputs[0]["points"]
    if points.min() < 0 or points.max() > 1:
        raise Rejected("a point lies outside the unit square")
    gaps = np.linalg.norm(points[:, None] - points[None], axis=-1) + 9 * np.eye(4)
    return {"score": float(gaps.min())}


def problem(**more: Any) -> Problem:
    return Problem.of("spread", cases=cases, score=spread, initial_program=START, **more)


def test_a_search_in_a_few_lines(tmp_path: Path) -> None:
    with Run.of("signal", runs=tmp_path, name="few", **QUICK) as run:
        history = run.evolve()
    assert history.evaluated == 12 and history.best is not None
    assert (tmp_path / "few" / "run.db").is_file()


def test_a_problem_of_two_functions_is_searched_and_its_events_are_seen(tmp_path: Path) -> None:
    with Run.of(problem(), runs=tmp_path, name="mine", **QUICK) as run:
        before = list(run.log.events())
        seen = list(run.events())
        assert run.history.verdicts[INITIAL].score == pytest.approx(0.31622776601683794)
    assert [each.event for each in read_log(tmp_path / "mine")] == [
        *(each.event for each in before),
        *seen,
    ]
    children = {each.id for each in seen if isinstance(each, Child)}
    # An idle evaluator has verdicts on fills too, as many as it finds time for.
    assert sum(isinstance(each, Verdict) and each.candidate in children for each in seen) == 12
    (read,) = read_runs([tmp_path / "mine"])  # reports need nothing of Python
    assert read.history.evaluated == 12


def test_a_run_that_was_left_has_ended_in_good_order_and_goes_on(tmp_path: Path) -> None:
    folder, many = tmp_path / "left", {**QUICK, "budget": {"candidates": 100}}
    with Run.of(problem(), runs=tmp_path, name="left", **many) as run:
        for event in run.events():
            if isinstance(event, Child):
                break
        with pytest.raises(RuntimeError, match="iterated over once"):
            run.events()
    with Run.resume(folder, problem=problem()) as run:
        assert not run.is_over
        kinds = {type(each) for each in run.events()}
    assert Verdict in kinds and run.is_over


def test_a_run_is_evolved_once(tmp_path: Path) -> None:
    """A second time behind a resume was an error of the log's, and else silently went on."""
    folder, many = tmp_path / "once", {**QUICK, "budget": {"candidates": 40}}
    with Run.of("signal", runs=tmp_path, name="once", **many) as run:
        run.evolve(stopped=lambda: run.history.evaluated >= 3)
        for again in (run.evolve, run.events):
            with pytest.raises(RuntimeError, match=r"once; go on with Run\.resume"):
                again()
    with Run.resume(folder) as run:
        run.evolve(stopped=lambda: run.history.evaluated >= 6)
        with pytest.raises(RuntimeError, match="evolved once"):
            run.evolve()
    with Run.resume(folder) as run:
        assert run.evolve().evaluated == 40
        assert run.evolve() is run.history  # it is over
        assert len(run.history.sessions) == 3


def test_the_seconds_of_a_first_session_count_from_its_loop_too(tmp_path: Path) -> None:
    limits = {"candidates": 12, "seconds": 1800}
    with Run.of("signal", runs=tmp_path, name="late", **{**QUICK, "budget": limits}) as run:
        run.log.leave_out(-3600.0)  # as if whoever began the run had taken an hour
        assert run.evolve().evaluated == 12
        seconds = [each.elapsed for each in run.log.events()]
    assert seconds == sorted(seconds) and seconds[-1] < 1800


def test_leaving_the_run_ends_its_loop(tmp_path: Path) -> None:
    with Run.of(problem(), runs=tmp_path, name="dropped", **QUICK) as run:
        events = run.events()
        next(events)
    assert "loop" not in {each.name for each in threading.enumerate()}
    with Run.resume(tmp_path / "dropped", problem=problem()) as run:
        assert run.evolve().evaluated == 12


def test_what_fails_in_the_loop_is_raised_where_the_events_are_read(tmp_path: Path) -> None:
    calls = 0

    def fails(outputs: Any) -> dict[str, float]:
        nonlocal calls
        calls += 1
        return spread(outputs)

    mine = Problem.of("fails", cases=cases, score=fails, initial_program=START)
    with Run.of(mine, runs=tmp_path, name="fails", **QUICK) as run:
        assert run.parts is not None
        run.parts.evaluators.close()  # as if the evaluators were lost
        with pytest.raises(RuntimeError, match="closed"):
            list(run.events())
    assert calls >= 1


@pytest.mark.parametrize("own", [None, KeyError], ids=["quiet", "raises"])
def test_what_failed_in_the_loop_is_raised_where_the_run_is_left_if_nobody_read_on(
    tmp_path: Path, own: type[Exception] | None
) -> None:
    """But for an error of the block's own, which is the one that is raised."""
    with pytest.raises(own or RuntimeError, match=None if own else "closed"):  # noqa: SIM117
        with Run.of(problem(), runs=tmp_path, name="fails", **QUICK) as run:
            assert run.parts is not None
            run.parts.evaluators.close()  # as if the evaluators were lost
            for event in run.events():
                if isinstance(event, Child) and event.refusal is None:
                    break  # it can't be evaluated
            if own is not None:
                raise own


def test_resuming_needs_the_same_functions(tmp_path: Path) -> None:
    with Run.of(problem(), runs=tmp_path, name="same", **QUICK):
        pass
    with pytest.raises(UserError, match="made in Python; go on from there"):  # noqa: SIM117
        with Run.resume(tmp_path / "same"):
            pass
    with pytest.raises(UserError, match="changed since"):  # noqa: SIM117
        with Run.resume(tmp_path / "same", problem=problem(seconds=9)):
            pass


def test_a_run_on_a_cluster_is_the_command_lines(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cluster is ray, and a run from Python"):  # noqa: SIM117
        with Run.of("signal", runs=tmp_path, cluster="ray", **QUICK):
            pass
    assert not [*tmp_path.iterdir()]


def test_pools_and_exports_take_runs_of_a_problem_made_in_python(tmp_path: Path) -> None:
    for seed in (0, 1):
        with Run.of(problem(), runs=tmp_path, name=f"s{seed}", seed=seed, **QUICK) as run:
            run.evolve()
    runs = [tmp_path / "s0", tmp_path / "s1"]
    assert [group.label for group in grouped_runs(read_runs(runs))] == [""]
    best = export(runs, to=tmp_path / "pool", top=2)
    assert len(best) == 2 and best[0].score >= best[1].score
    out = tmp_path / "groups.jsonl"
    assert export_main([*map(str, runs), "format=groups", f"out={out}"]) == 0
    assert out.read_text()


def test_the_command_line_says_where_such_a_run_goes_on(tmp_path: Path) -> None:
    with Run.of(problem(), runs=tmp_path, name="said", **QUICK):
        pass
    done = subprocess.run(
        [sys.executable, "-m", "engine.run", f"resume={tmp_path / 'said'}"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "engine.Run.resume(FOLDER, problem=...)" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_home_is_a_home_wherever_runs_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with Run.of("signal", runs="~/runs", name="mine", **QUICK) as run:
        assert run.folder == tmp_path / "runs" / "mine"
    with Run.resume("~/runs/mine") as run:
        assert run.folder == tmp_path / "runs" / "mine"
    assert main(["resume=~/runs/none"]) == 2
    assert f"error: {tmp_path}/runs/none is not a run" in capsys.readouterr().err
    assert main(["resume=~nobody-at-all/runs"]) == 2
    assert "can't be resolved" in capsys.readouterr().err


def test_what_a_killed_process_was_making_goes_when_another_run_begins(tmp_path: Path) -> None:
    """Once it is old: a young one may be a run's that begins just now."""
    for name, age in ((".brood-new-old", 7200), (".brood-new-young", 0), ("old", 7200)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").touch()
        changed = (tmp_path / name).stat().st_mtime - age
        os.utime(tmp_path / name, (changed, changed))
    with Run.of("signal", runs=tmp_path, name="next", **QUICK):
        pass
    left = sorted(each.name for each in tmp_path.iterdir())
    assert left == [".brood-new-young", "next", "old"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"initial_program": "x = 1\n"}, "name entry_point"),
        ({"initial_program": "def f(:\n"}, "does not parse"),
        ({"cases": list}, "at least one"),
        ({"seconds": 0}, "seconds is 0; it must be above 0"),
        ({"memory_mb": 1e300}, r"memory_mb is 1e\+300; it must be at least 1 and below"),
        ({"direction": "up"}, "up"),
    ],
)
def test_a_problem_that_is_none(wrong: dict[str, Any], says: str) -> None:
    given = {"cases": cases, "score": spread, "initial_program": START, **wrong}
    with pytest.raises(ValueError, match=says):
        Problem.of("spread", **given)
    with pytest.raises(ValueError, match="letters, digits"):
        Problem.of("a/b", cases=cases, score=spread, initial_program=START)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"budget": {"candidate": 3}}, "did you mean budget.candidates"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": object()}, "seed is <object"),
        ({"seed": np.float32(1.5)}, r"seed is 1\.5"),
        ({"model": "smollm9"}, "unknown model 'smollm9'"),
    ],
)
def test_wrong_keywords_are_a_line(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        Run.of("signal", **given)
    with pytest.raises(UserError, match="unknown problem 'nope'"):
        Run.of("nope")
