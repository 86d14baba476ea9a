"""Round trips: what a tour is worth, and what is none."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.core import Evaluation, Failure, Problem, Rejected
from engine.core.bundle import files_of
from engine.evaluation import open_pool
from engine.mutation import mutated
from engine.problem import load_problem, shipped
from engine.syntax.blocks import keeps_fixed, outline


@pytest.fixture(scope="module")
def problem() -> Problem:
    return load_problem(Path(shipped()["tour"]))


def circle(points: np.ndarray) -> np.ndarray:
    """Visit points by their direction from the middle."""
    return np.argsort(np.arctan2(points[:, 1] - 0.5, points[:, 0] - 0.5))


def test_a_tour_has_one_length_whichever_way_and_wherever_it_begins(problem: Problem) -> None:
    tours = [circle(case.args[0]) for case in problem.cases]
    scores = [
        problem.score([{"tour": change(tour)} for tour in tours])["score"]
        for change in (lambda t: t, lambda t: t[::-1], lambda t: np.roll(t, 7))
    ]
    assert scores == pytest.approx([scores[0]] * 3)
    assert 0 < scores[0] < 1


@pytest.mark.parametrize("change", [lambda t: np.where(t == 3, 4, t), lambda t: t + 1])
def test_a_tour_that_leaves_out_a_point_is_refused(
    problem: Problem, change: Callable[[np.ndarray], np.ndarray]
) -> None:
    tours = [circle(case.args[0]) for case in problem.cases]
    with pytest.raises(Rejected, match="every point once"):
        problem.score([{"tour": change(tour)} for tour in tours])


def test_only_two_of_three_files_may_change(problem: Problem) -> None:
    whole = outline(problem.initial_program)
    assert [file.name for file in whole.files] == ["improve.py", "solve.py", "start.py"]
    assert [file.name for file in whole.open_files] == ["improve.py", "start.py"]


def test_programs_are_evaluated_and_mutations_find_better_ones(problem: Problem) -> None:
    children = [mutated(problem.initial_program, seed=seed, temperature=0.5) for seed in range(30)]
    assert all(keeps_fixed(child, parent=problem.initial_program) for child in children)
    broken = problem.initial_program.replace("    while left:", "    while left and 1 / 0:")
    with open_pool(problem=problem, workers=1) as pool:
        for number, program in enumerate([problem.initial_program, broken, *children]):
            pool.submit(candidate_id=str(number), program=program)
        verdicts: dict[str, Evaluation] = {}
        while len(verdicts) < 2 + len(children):
            verdicts.update(pool.completed(timeout=None))
    first = verdicts["0"].score
    assert first == pytest.approx(0.7784797032682413)
    assert verdicts["1"].failure is Failure.ERROR
    assert verdicts["1"].message.startswith("start.py line 9: ZeroDivisionError")
    assert any(each.score is not None and each.score > first for each in verdicts.values())
    assert len(files_of(children[0])) == 3
