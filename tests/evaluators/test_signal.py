"""The ``signal`` problem: its calibration scores and its contract."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.core import Direction, Outputs, Problem
from engine.problem import load_problem, shipped

Run = Callable[[str, Problem], list[Outputs]]


@pytest.fixture(scope="module")
def problem() -> Problem:
    return load_problem(shipped()["signal"])


def test_the_initial_program_scores_as_measured(problem: Problem, run: Run) -> None:
    metrics = problem.score(run(problem.initial_program, problem))
    assert metrics["score"] == pytest.approx(0.4990, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "score", "tolerance"),
    [
        ("passthrough", 0.462, 5e-4),
        ("ema", 0.504, 5e-4),
        ("gaussian", 0.7228, 5e-5),
        ("gaussian_last", 0.7379, 5e-5),
        ("clean", 0.7273, 5e-5),
    ],
)
def test_calibration(
    problem: Problem,
    run: Run,
    calibration: Callable[[str], str],
    name: str,
    score: float,
    tolerance: float,
) -> None:
    metrics = problem.score(run(calibration(name), problem))
    assert metrics["score"] == pytest.approx(score, abs=tolerance)


def test_the_clean_signals_have_the_best_metrics(
    problem: Problem, run: Run, calibration: Callable[[str], str]
) -> None:
    metrics = problem.score(run(calibration("clean"), problem))
    assert metrics["correlation"] == pytest.approx(1)
    assert metrics["noise_reduction"] == pytest.approx(1)
    assert metrics["false_reversals"] == 0


def test_two_samples_break_the_contract(
    problem: Problem, run: Run, calibration: Callable[[str], str]
) -> None:
    outputs = run(calibration("two_samples"), problem)
    for case, output in zip(problem.cases, outputs, strict=True):
        assert output["filtered_signal"].shape != case.outputs["filtered_signal"].shape
    with pytest.raises(ValueError, match=r"shape \(481,\) but it had shape \(2,\)"):
        problem.score(outputs)


def test_the_declaration(problem: Problem) -> None:
    assert problem.direction is Direction.MAXIMISE
    assert problem.entry_point == "run_signal_processing"
    assert [case.name for case in problem.cases] == [f"signal {i}" for i in range(5)]
    assert not problem.isolate_cases
    assert (problem.limits.seconds, problem.limits.memory_bytes) == (5, 512 << 20)
    assert all(0.5 < known.score < 0.8 and known.source for known in problem.known_scores)


def test_a_copy_of_the_folder_works_on_its_own(problem: Problem, run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(problem.folder, folder, ignore=shutil.ignore_patterns("__pycache__"))
    copy = load_problem(folder)
    assert copy.fingerprint == problem.fingerprint
    outputs = run(problem.initial_program, problem)
    assert copy.score(outputs) == problem.score(outputs)
    data = folder / "cases.py"
    data.write_text(data.read_text().replace("range(5)", "range(4)"))
    assert len(load_problem(folder).cases) == 4  # its own signals, not those of the original
