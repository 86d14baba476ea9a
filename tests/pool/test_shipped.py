"""The pools that come with the problems: how they are named, and that they are what they say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from verdicts import evaluate

from engine import config
from engine.core import Problem, UserError
from engine.evaluation import EvaluatorPool
from engine.pool import read_pool
from engine.pool.runs import INDEX
from engine.problem import POOL, load_problem, shipped

WITHOUT_POOL = {
    *("eplb", "protein_fitness", "sequential_recommendation"),  # whose data are the user's own
    *("matrix_product", "tour"),
}
WITH_POOL = sorted(set(shipped()) - WITHOUT_POOL)


def sources(*arguments: str) -> tuple[str, ...]:
    return config.resolve(list(arguments)).pool.sources


def test_a_problems_own_pool_has_a_name(tmp_path: Path) -> None:
    own = str(shipped()["signal"] / POOL)
    assert sources("problem=signal", "pool.sources=shipped") == (own,)
    assert sources("problem=signal", f"pool.sources=[{tmp_path},shipped]") == (str(tmp_path), own)
    mine = tmp_path / "mine"
    shutil.copytree(shipped()["signal"], mine)
    expected = (str(mine / POOL),)
    assert sources(f"problem.path={mine}", "pool.sources=[shipped]") == expected


def test_a_folder_of_that_name_is_given_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sources("problem=eplb", "pool.sources=./shipped") == (str(tmp_path / "shipped"),)


@pytest.mark.parametrize("problem", sorted(WITHOUT_POOL))
def test_a_problem_without_a_pool_says_so(problem: str) -> None:
    with pytest.raises(UserError, match=f"problem {problem} comes with no pool; name a folder"):
        sources(f"problem={problem}", "pool.sources=shipped")


def test_a_pool_does_not_change_the_problem(tmp_path: Path) -> None:
    folder = tmp_path / "signal"
    shutil.copytree(shipped()["signal"], folder)
    before = load_problem(folder)
    (folder / POOL / "another.py").write_text("x = 1\n")
    assert load_problem(folder).fingerprint == before.fingerprint
    shutil.rmtree(folder / POOL)
    assert load_problem(folder).fingerprint == before.fingerprint


def programs_of(problem: Problem) -> dict[str, str]:
    """Return the programs of a problem's own pool by their files."""
    found = read_pool([problem.folder / POOL], problem=problem, most_of_run=1)
    assert found.unusable == {}
    return {name.partition("/")[2]: each.text for name, each in found.programs.items()}


def listed_scores(problem: Problem) -> dict[str, float]:
    index = json.loads((problem.folder / POOL / INDEX).read_text(encoding="utf-8"))
    assert index["problem"] == problem.name
    return {each["file"]: each["score"] for each in index["programs"]}


@pytest.mark.parametrize("name", WITH_POOL)
def test_a_shipped_pool_holds_what_its_index_names(name: str) -> None:
    problem = load_problem(shipped()[name])
    programs = programs_of(problem)
    assert 5 <= len(programs) <= 8
    assert set(listed_scores(problem)) <= set(programs)


def test_the_programs_of_uncertainty_are_six_and_all_better_than_the_initial() -> None:
    problem = load_problem(shipped()["uncertainty"])
    scores = listed_scores(problem).values()
    assert len(set(scores)) == len(scores) == 6
    with EvaluatorPool(problem=problem, workers=1) as pool:
        initial = evaluate(pool, problem.initial_program).score
    assert initial is not None and max(scores) < initial


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_POOL)
def test_the_programs_of_a_shipped_pool_score_what_its_index_says(name: str) -> None:
    problem = load_problem(shipped()[name])
    programs, listed = programs_of(problem), listed_scores(problem)
    with EvaluatorPool(problem=problem, workers=1) as pool:
        for file, program in programs.items():
            score = evaluate(pool, program).score
            assert score is not None, file
            # Another machine's libraries round otherwise, and an optimiser may end elsewhere then.
            assert score == pytest.approx(listed.get(file, score), rel=0.02), file
