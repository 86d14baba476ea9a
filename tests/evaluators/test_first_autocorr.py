"""The ``first_autocorr`` problem: its initial program, known constructions and closed holes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from engine.core import Array, Direction, Outputs, Problem, Rejected
from engine.problem import load_problem, shipped

Run = Callable[[str, Problem], list[Outputs]]


@pytest.fixture(scope="module")
def problem() -> Problem:
    return load_problem(shipped()["first_autocorr"])


def score(problem: Problem, f: Array | list[float]) -> float:
    return problem.score([{"f_values": np.asarray(f, dtype=np.float64)}])["score"]


def test_the_initial_program(problem: Problem, run: Run) -> None:
    outputs = run(problem.initial_program, problem)
    metrics = problem.score(outputs)
    assert metrics["score"] == pytest.approx(1.74, abs=0.03)  # a chain of accepted changes
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
    assert min(known.score for known in problem.known_scores) == 1.50287


def test_a_constant_scores_2(problem: Problem) -> None:
    assert score(problem, np.full(33, 1e-5)) == pytest.approx(2, rel=1e-14)


def test_the_binomial_construction_scores_half_of_pi(problem: Problem) -> None:
    n = 10_000
    f = np.cumprod(np.concatenate(([1.0], (np.arange(1, n) - 0.5) / np.arange(1, n))))
    assert score(problem, f) == pytest.approx(math.pi / 2, rel=1e-4)


@pytest.mark.parametrize("low", [-5e-324, -1e-12, -1e-6, -1.0])
def test_no_negative_height_passes(problem: Problem, low: float) -> None:
    with pytest.raises(Rejected, match=r"f_values\[2\] is -.*no height may be below 0"):
        score(problem, [1.0, 2.0, low, 1.0])


def test_negative_zero_is_zero(problem: Problem) -> None:
    assert score(problem, [1.0, -0.0, 1.0]) == score(problem, [1.0, 0.0, 1.0])


def test_no_integral_is_refused(problem: Problem) -> None:
    with pytest.raises(Rejected, match="all f_values are 0"):
        score(problem, np.zeros(10))


def test_neither_huge_nor_tiny_heights_change_the_score(problem: Problem) -> None:
    f = np.random.default_rng(0).random(100) + 1.0
    expected = pytest.approx(score(problem, f), rel=1e-12)
    assert score(problem, f * 1e307) == expected  # products and sums would overflow
    assert score(problem, f * 1e-300) == expected  # products would underflow to 0
    assert score(problem, f * 2.0**-900) == score(problem, f)


def test_a_reported_value_is_not_read(problem: Problem) -> None:
    claimed = {"f_values": np.ones(4), "c1": np.array(1.0), "score": np.array(0.1)}
    assert problem.score([claimed])["score"] == pytest.approx(2)
