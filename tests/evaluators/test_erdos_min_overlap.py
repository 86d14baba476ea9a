"""The ``erdos_min_overlap`` problem: a good step function, and functions that are not allowed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.core import Array, Direction, Outputs, Problem, Rejected
from engine.problem import load_problem, shipped

DATA = Path(__file__).parent / "data"
Run = Callable[[str, Problem], list[Outputs]]


@pytest.fixture(scope="module")
def problem() -> Problem:
    return load_problem(shipped()["erdos_min_overlap"])


@pytest.fixture(scope="module")
def good() -> Array:
    """75 steps with an overlap near the best that is known."""
    return np.loadtxt(DATA / "min_overlap_steps.txt")


def score(problem: Problem, steps: Array) -> float:
    return problem.score([{"steps": steps}])["score"]


def test_the_initial_program_is_valid(problem: Problem, run: Run) -> None:
    metrics = problem.score(run(problem.initial_program, problem))
    assert metrics["score"] == pytest.approx(0.44322, abs=1e-5)
    assert metrics["n_steps"] == 51


def test_a_good_step_function_comes_near_the_known_scores(problem: Problem, good: Array) -> None:
    metrics = problem.score([{"steps": good}])
    assert metrics["score"] == pytest.approx(0.381014, abs=1e-6)
    public = np.max(np.correlate(good, 1 - good, mode="full")) * 2 / good.size
    assert metrics["score"] == pytest.approx(public, abs=1e-12)
    assert metrics["score"] > min(known.score for known in problem.known_scores)


def test_a_finer_grid_changes_nothing(problem: Problem, good: Array) -> None:
    assert score(problem, np.repeat(good, 7)) == pytest.approx(score(problem, good), abs=1e-11)


def test_symmetries_change_nothing(problem: Problem, good: Array) -> None:
    assert score(problem, good[::-1]) == pytest.approx(score(problem, good), abs=1e-13)


@pytest.mark.parametrize("n", [2, 3, 10_000])
def test_the_constant_scores_a_half(problem: Problem, n: int) -> None:
    assert score(problem, np.full(n, 0.5)) == pytest.approx(0.5, abs=1e-11)


def test_the_public_slack_of_the_integral_is_rejected(problem: Problem, good: Array) -> None:
    with pytest.raises(Rejected, match=r"integral is 0.999, but must be 1: .* and is 0.4995$"):
        score(problem, good * 0.999)


def test_less_integral_buys_nothing(problem: Problem, good: Array) -> None:
    honest = score(problem, good)
    for factor in (1 - 9e-7, 1 - 1e-9):
        metrics = problem.score([{"steps": good * factor}])
        assert metrics["score"] > honest
        assert metrics["integral_error"] == pytest.approx(1 - factor, rel=1e-3)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1 + 1e-9, r"1 are not; the first is steps\[4\] = 1$"),
        (-1e-12, r"steps\[4\] = -1e-12"),
        (np.nan, r"steps\[4\] = nan"),
        (np.inf, r"steps\[4\] = inf"),
        (1e308, r"steps\[4\] = 1e\+308"),
    ],
)
def test_steps_outside_are_rejected(problem: Problem, value: float, message: str) -> None:
    steps = np.full(10, 0.5)
    steps[4] = value
    with pytest.raises(Rejected, match=message):
        score(problem, steps)


def test_nothing_scores_below_the_proven_lower_bound(problem: Problem) -> None:
    # White, 2022: the constant is above 0.379005; a lower score would be a hole.
    rng = np.random.default_rng(0)
    for n in (2, 3, 8, 75, 500):
        for sharpness in (1, 100):
            steps = np.clip((rng.random(n) - 0.5) * sharpness + 0.5, 0, 1)
            mean = steps.mean()
            steps = steps * 0.5 / mean if mean > 0.5 else 1 - (1 - steps) * 0.5 / (1 - mean)
            assert score(problem, steps) > 0.379005


def test_the_declaration(problem: Problem) -> None:
    assert problem.direction is Direction.MINIMISE
    (case,) = problem.cases
    assert case.outputs["steps"].shape == (range(2, 10_001),)
    assert all(0.379005 < known.score < 0.382 for known in problem.known_scores)
