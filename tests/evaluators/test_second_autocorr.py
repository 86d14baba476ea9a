"""The ``second_autocorr`` problem: its initial program, known constructions and closed holes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engine.core import Array, Direction, Outputs, Problem, Rejected
from engine.problem import load_problem, shipped

Run = Callable[[str, Problem], list[Outputs]]

# The step heights published with AlphaEvolve, appendix B.2, for which its own check gives
# 0.89627994415540...
ALPHAEVOLVE = """
    0.0022217502753395443 0.798058737836952 0.4369294656327977 1.1704958412868685
    1.3413665690827143 1.5342366222696133 1.7690742844401723 1.9329450122360183 2.2225113878900893
    1.9363966992163675 2.0382191032475467 2.2010898310433933 2.0229605588392388 2.029541518023742
    2.2636974412575626 1.9622346498507677 2.0781053776466134 2.9856571697702514 3.4418422600649374
    3.3477129878607825 3.253250196453988 3.420135507780267 3.2509579118114464 3.2308578066681575
    3.4707132763246245 2.6462657430572087 0.9614362498214617 0 0.0008733532713782356
    0.00041056186458359313 0.00029587319086208687 5.039012949497012e-06 0 0.5858888998745988
    6.741440691998236 7.934548956206666e-06 0.00013382382526231794 4.551621108101551e-06
    0.0008898629473865954 1.083008496291632e-05 0.0006121618352774956 0.0011493704284828532
    7.157034681754761 9.111886252846807 3.3127569806426527 8.556232703271356e-06
    0.00017950056213609822 2.7122354902710758e-06 1.4036462843158317e-05 1.1451768709981007e-05
"""


@pytest.fixture(scope="module")
def problem() -> Problem:
    return load_problem(shipped()["second_autocorr"])


def score(problem: Problem, f: Array | list[float]) -> float:
    return problem.score([{"f_values": np.asarray(f, dtype=np.float64)}])["score"]


def test_the_initial_program(problem: Problem, run: Run) -> None:
    outputs = run(problem.initial_program, problem)
    metrics = problem.score(outputs)
    assert metrics["score"] == pytest.approx(0.83, abs=0.03)  # a chain of accepted changes
    assert metrics["relative_error_bound"] < 1e-12
    assert metrics["n_steps"] == 50
    assert problem.score(run(problem.initial_program, problem)) == metrics


def test_the_declaration(problem: Problem) -> None:
    assert problem.direction is Direction.MAXIMISE
    assert problem.entry_point == "run"
    assert [case.args for case in problem.cases] == [()]
    spec = problem.cases[0].outputs["f_values"]
    assert spec.finite  # NaN and infinities are refused before they are scored
    assert spec.shape == (range(2, 10_001),)
    assert max(known.score for known in problem.known_scores) == 0.9610


def test_the_published_construction_has_its_published_score(problem: Problem) -> None:
    f = np.array(ALPHAEVOLVE.split(), dtype=np.float64)
    assert f.size == 50
    assert score(problem, f) == pytest.approx(0.8962799441554086, abs=1e-14)


def test_a_constant_scores_two_thirds(problem: Problem) -> None:
    assert score(problem, np.full(33, 0.1)) == pytest.approx(2 / 3, rel=1e-14)


def test_the_score_does_not_depend_on_the_grid(problem: Problem) -> None:
    f = np.random.default_rng(0).random(40)
    finer = np.repeat(f, 5)  # the same step function, so the same f*f
    assert score(problem, finer) == pytest.approx(score(problem, f), rel=1e-12)


@pytest.mark.parametrize("low", [-5e-324, -1e-12, -1e-6, -1.0])
def test_no_negative_height_passes(problem: Problem, low: float) -> None:
    with pytest.raises(Rejected, match=r"f_values\[2\] is -.*no height may be below 0"):
        score(problem, [1.0, 2.0, low, 1.0])


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
    claimed = {"f_values": np.ones(4), "c2": np.array(1.0), "score": np.array(0.99)}
    assert problem.score([claimed])["score"] == pytest.approx(2 / 3)
