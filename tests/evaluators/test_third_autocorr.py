"""The ``third_autocorr`` problem: its initial program, known constructions and closed holes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engine.core import Array, Direction, Outputs, Problem, Rejected
from engine.problem import load_problem, shipped

Run = Callable[[str, Problem], list[Outputs]]


@pytest.fixture(scope="module")
def problem() -> Problem:
    return load_problem(shipped()["third_autocorr"])


def score(problem: Problem, f: Array | list[float]) -> float:
    return problem.score([{"f_values": np.asarray(f, dtype=np.float64)}])["score"]


def test_the_initial_program(problem: Problem, run: Run) -> None:
    outputs = run(problem.initial_program, problem)
    metrics = problem.score(outputs)
    assert metrics["score"] == pytest.approx(1.73, abs=0.03)  # a chain of accepted changes
    assert metrics["relative_error_bound"] < 1e-12
    assert metrics["n_steps"] == 100
    assert problem.score(run(problem.initial_program, problem)) == metrics


def test_the_declaration(problem: Problem) -> None:
    assert problem.direction is Direction.MINIMISE
    assert problem.entry_point == "run"
    assert [case.args for case in problem.cases] == [()]
    spec = problem.cases[0].outputs["f_values"]
    assert spec.finite  # NaN and infinities are refused before they are scored
    assert spec.shape == (range(2, 10_001),)
    assert [known.score for known in problem.known_scores] == [1.45810]


def test_a_constant_of_either_sign_scores_2(problem: Problem) -> None:
    assert score(problem, np.full(33, 0.1)) == pytest.approx(2, rel=1e-14)
    assert score(problem, np.full(33, -0.1)) == pytest.approx(2, rel=1e-14)


def test_a_negative_peak_counts(problem: Problem) -> None:
    # f*f at its knots is 4, -6, 2.25 times 1/4: abs(max) would give 64, and max(abs) gives 96
    assert score(problem, [2.0, -1.5]) == pytest.approx(96)


def test_the_sign_of_f_does_not_matter(problem: Problem) -> None:
    f = np.random.default_rng(0).normal(0.5, 1.0, 300)
    assert score(problem, -f) == score(problem, f)
    assert score(problem, f[::-1]) == pytest.approx(score(problem, f), rel=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        [0.0, 0.0],
        [1.0, -1.0],
        [0.1, 0.2, -0.3],
        [1e300, 1.0, -1e300],
        [1.0, -1.0, 1e-12],
        [1.0, -1.0, 1e-300],
    ],
)
def test_an_integral_that_cancels_is_refused(problem: Problem, f: list[float]) -> None:
    with pytest.raises(Rejected, match="integral of f is too close to 0"):
        score(problem, f)


def test_neither_huge_nor_tiny_heights_change_the_score(problem: Problem) -> None:
    f = np.random.default_rng(0).normal(1.0, 0.5, 100)
    expected = pytest.approx(score(problem, f), rel=1e-12)
    assert score(problem, f * 1e307) == expected  # products and sums would overflow
    assert score(problem, f * 1e-300) == expected  # a fixed bound on the integral would refuse it
    assert score(problem, f * 2.0**-900) == score(problem, f)


def test_a_reported_value_is_not_read(problem: Problem) -> None:
    claimed = {"f_values": np.ones(4), "c3": np.array(1.0), "score": np.array(0.1)}
    assert problem.score([claimed])["score"] == pytest.approx(2)
