"""The ``circle_packing`` problem: published packings, and packings that are none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.core import Array, Direction, Outputs, Problem, Rejected
from engine.problem import load_problem, shipped

DATA = Path(__file__).parent / "data"
Packed = tuple[Array, Array, float]


@pytest.fixture(scope="module")
def problem() -> Problem:
    return load_problem(shipped()["circle_packing"])


@pytest.fixture(scope="module")
def circles() -> Array:
    """The 26 circles that rEVOLVE printed, as rows of x, y, radius."""
    return np.loadtxt(DATA / "revolve_circles.txt")


def pack(program: str, problem: Problem) -> Outputs:
    names: dict[str, object] = {}
    exec(compile(program, "program.py", "exec"), names)
    run_packing = names[problem.entry_point]
    assert callable(run_packing)
    return outputs(*run_packing())


def outputs(centers: Array, radii: Array, radii_sum: float = 0.0) -> Outputs:
    return {"centers": centers, "radii": radii, "sum": np.asarray(radii_sum)}


def grid() -> tuple[Array, Array]:
    """25 circles of radius 0.1 on a grid, and a 26th that fits between four of them."""
    places = np.linspace(0.1, 0.9, 5)
    centers = [(x, y) for x in places for y in places] + [(0.2, 0.2)]
    return np.array(centers), np.array([0.1] * 25 + [0.1 * (np.sqrt(2) - 1)])


def test_the_initial_program_is_a_valid_packing(problem: Problem) -> None:
    metrics = problem.score([pack(problem.initial_program, problem)])
    # Chance that a last digit decides moves it: no two kinds of CPU have to agree on it.
    assert metrics["score"] == pytest.approx(2.0986, abs=0.05)
    assert metrics["score_1e6"] == pytest.approx(metrics["score"], abs=1e-9)


def test_the_circles_that_revolve_printed(problem: Problem, circles: Array) -> None:
    metrics = problem.score([outputs(circles[:, :2], circles[:, 2])])
    assert metrics["score_1e6"] == pytest.approx(2.63598, abs=5e-6)
    # They were shrunk before they were printed, so they do not overlap at all.
    assert metrics["shrink"] == 0
    assert metrics["score"] == pytest.approx(metrics["score_1e6"], abs=1e-14)


def test_the_program_that_revolve_printed(problem: Problem) -> None:
    program = (DATA / "revolve_program.txt").read_text()
    metrics = problem.score([pack(program, problem)])
    assert metrics["score"] >= 2.63598
    assert metrics["target_ratio"] == pytest.approx(metrics["score"] / 2.635)
    assert metrics["shrink"] < 1e-9


def test_a_grid(problem: Problem) -> None:
    metrics = problem.score([outputs(*grid())])
    assert metrics["score"] == pytest.approx(2.5 + 0.1 * (np.sqrt(2) - 1), abs=1e-12)


def test_the_public_tolerance_buys_nothing(problem: Problem) -> None:
    centers, radii = grid()
    honest = problem.score([outputs(centers, radii)])
    inflated = problem.score([outputs(centers, radii + 4.9e-7)])
    assert inflated["score_1e6"] == pytest.approx(honest["score_1e6"] + 26 * 4.9e-7)
    assert inflated["score"] == pytest.approx(honest["score"], abs=1e-13)
    assert inflated["shrink"] == pytest.approx(4.9e-7)


def test_more_than_the_public_tolerance_scores_0_there(problem: Problem) -> None:
    centers, radii = grid()
    metrics = problem.score([outputs(centers, radii + 1e-5)])
    assert metrics["score_1e6"] == 0
    assert metrics["score"] == pytest.approx(2.5 + 0.1 * (np.sqrt(2) - 1), abs=1e-9)


@pytest.mark.parametrize("claimed", [99.0, -1.0, np.nan, np.inf])
def test_the_claimed_sum_is_not_believed(problem: Problem, claimed: float) -> None:
    centers, radii = grid()
    assert problem.score([outputs(centers, radii, claimed)]) == problem.score(
        [outputs(centers, radii)]
    )


@pytest.mark.parametrize("radius", [0.5, 1.0, 1e10, 1e308])
def test_huge_circles_are_worth_what_fits(problem: Problem, radius: float) -> None:
    centers, _ = grid()
    metrics = problem.score([outputs(centers, np.full(26, radius))])
    assert metrics["score"] <= 26 * 0.1
    assert metrics["score_1e6"] == 0


def test_26_circles_in_one_place_score_0(problem: Problem) -> None:
    metrics = problem.score([outputs(np.full((26, 2), 0.5), np.full(26, 0.5))])
    assert (metrics["score"], metrics["score_1e6"], metrics["shrink"]) == (0, 0, 0.5)


def negative(centers: Array, radii: Array) -> None:
    radii[3] = -0.1


def barely_negative(centers: Array, radii: Array) -> None:
    radii[25] = -5e-324


def outside(centers: Array, radii: Array) -> None:
    centers[7] = 1.5, 0.5


def not_a_number(centers: Array, radii: Array) -> None:
    radii[0] = np.nan


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (negative, "circle 3 has a negative radius, -0.1"),
        (barely_negative, "circle 25 has a negative radius"),
        (outside, r"circle 7 has its center \(1.5, 0.5\) outside"),
        (not_a_number, "not finite"),
    ],
)
def test_what_is_no_packing_is_rejected(
    problem: Problem, spoil: Callable[[Array, Array], None], message: str
) -> None:
    centers, radii = grid()
    spoil(centers, radii)
    with pytest.raises(Rejected, match=message):
        problem.score([outputs(centers, radii)])


def test_single_precision_and_strided_arrays_score_like_their_copies(problem: Problem) -> None:
    centers, radii = (array.astype(np.float32) for array in grid())
    wide = np.repeat(radii, 2)
    assert problem.score([outputs(centers, wide[::2])]) == problem.score(
        [outputs(np.asfortranarray(centers), radii.astype(np.float64))]
    )


def test_the_declaration(problem: Problem) -> None:
    assert problem.direction is Direction.MAXIMISE
    (case,) = problem.cases
    assert case.args == ()
    assert {name: spec.shape for name, spec in case.outputs.items()} == {
        "centers": (26, 2),
        "radii": (26,),
        "sum": (),
    }
    assert case.outputs["centers"].finite
    assert case.outputs["radii"].finite
    assert all(2.63 < known.score < 2.64 for known in problem.known_scores)
    assert max(known.score for known in problem.known_scores if known.comparable) == 2.6359828880
