"""The ``protein_fitness`` problem: baselines, and every way to cheat its metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.core import Direction, Outputs, Problem, UserError
from engine.core.bundle import bundle_of, files_of
from engine.problem import load_problem, shipped
from engine.syntax.blocks import outline
from evaluators.protein_fitness.evaluator import with_data

Run = Callable[[str, Problem], list[Outputs]]

ADDITIVE = """
import numpy as np

def predict_fitness(wild_type, train_sequences, train_fitness, test_sequences, *training):
    def one_hot(sequences):
        return (sequences[:, :, None] == np.arange(20)).reshape(len(sequences), -1).astype(float)

    inputs = one_hot(train_sequences)
    gram = inputs @ inputs.T + np.eye(len(inputs))
    weights = np.linalg.solve(gram, train_fitness - train_fitness.mean())
    return {"fitness": one_hot(test_sequences) @ inputs.T @ weights}
"""


@pytest.fixture(autouse=True, scope="module")
def torch_threads() -> Iterator[None]:
    """Give torch its threads back: the initial program, run in this process, sets one."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def problem() -> Problem:
    return load_problem(shipped()["protein_fitness"])


@pytest.fixture(scope="module")
def truth() -> list[Outputs]:
    return [{"fitness": task.test_fitness} for task in with_data(None).tasks]


@pytest.mark.slow
def test_the_initial_program_beats_an_additive_model_and_repeats_itself(
    problem: Problem, run: Run
) -> None:
    initial = run(problem.initial_program, problem)
    metrics = problem.score(initial)
    assert metrics["score"] == pytest.approx(0.704, abs=0.03)  # sums depend on the machine
    assert metrics["pearson"] > problem.score(run(ADDITIVE, problem))["pearson"] > 0.6
    for one, other in zip(initial, run(problem.initial_program, problem), strict=True):
        np.testing.assert_array_equal(one["fitness"], other["fitness"])


def test_only_the_model_may_change(problem: Problem) -> None:
    whole = outline(problem.initial_program)
    assert [file.name for file in whole.files] == ["harness.py", "model.py"]
    assert [file.name for file in whole.open_files] == ["model.py"]


def changed(problem: Problem, *, old: str, new: str) -> str:
    files = files_of(problem.initial_program)
    assert old in files["model.py"]
    return bundle_of({**files, "model.py": files["model.py"].replace(old, new)})


def test_each_part_of_the_model_is_used_and_the_harness_can_not_be_set(
    problem: Problem, run: Run
) -> None:
    one = replace(problem, stages=problem.stages[:1])

    def predicted(program: str) -> np.ndarray:
        return run(program, one)[0]["fitness"]

    initial = predicted(problem.initial_program)
    for old, new in {
        "HIDDEN = 32": "HIDDEN = 8",
        "DECAY = 0.003": "DECAY = 0.1",
        "WEIGHTS = (1.0, 1.0, 1.0)": "WEIGHTS = (1.0, 1.0, 5.0)",
        "predictions.mean(dim=0)": "predictions[0]",
        "features[rows, np": "features[rows, 0 * np",
    }.items():
        other = predicted(changed(problem, old=old, new=new))
        assert not np.allclose(initial, other), new
    sets = "import sys; sys.modules['harness'].BATCH = sys.modules['harness'].LEARNING_RATE = 1"
    line = "        self.layers = nn"
    tampers = changed(problem, old=line, new=f"        {sets}\n{line}")
    np.testing.assert_array_equal(initial, predicted(tampers))


def test_the_truth_scores_1_in_any_unit(problem: Problem, truth: list[Outputs]) -> None:
    for scale, offset in ((1, 0), (1e-3, 50), (1e9, -3)):
        metrics = problem.score([{"fitness": scale * t["fitness"] + offset} for t in truth])
        assert metrics["score"] == pytest.approx(1, abs=1e-9)


def test_the_truth_upside_down_scores_minus_seven_tenths(
    problem: Problem, truth: list[Outputs]
) -> None:
    metrics = problem.score([{"fitness": -t["fitness"]} for t in truth])
    assert metrics["score"] == pytest.approx(-0.7)
    assert metrics["precision_at_5"] == 0


@pytest.mark.parametrize("value", [0.0, 0.3, 1e308, -1e308])
def test_a_constant_prediction_earns_what_chance_earns(
    problem: Problem, truth: list[Outputs], value: float
) -> None:
    metrics = problem.score([{"fitness": np.full(t["fitness"].shape, value)} for t in truth])
    chance = np.mean([5 / t["fitness"].size for t in truth])
    assert metrics["pearson"] == metrics["spearman"] == 0
    assert metrics["score"] == pytest.approx(0.3 * chance)


def test_predictions_of_any_size_give_finite_metrics(
    problem: Problem, truth: list[Outputs]
) -> None:
    rng = np.random.default_rng(0)
    huge = [{"fitness": rng.choice([-1.7e308, 1.7e308], t["fitness"].shape)} for t in truth]
    assert np.isfinite(list(problem.score(huge).values())).all()


def test_the_score_weighs_the_means_over_the_proteins(
    problem: Problem, truth: list[Outputs]
) -> None:
    mixed = [{"fitness": (-1) ** i * t["fitness"]} for i, t in enumerate(truth)]
    metrics = problem.score(mixed)
    assert metrics["pearson"] == pytest.approx(0, abs=1e-12)
    assert metrics["precision_at_5"] == 0.5
    assert metrics["score"] == pytest.approx(0.15)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_prediction_that_is_not_finite_is_refused(
    problem: Problem, truth: list[Outputs], value: float
) -> None:
    given = [{"fitness": t["fitness"].copy()} for t in truth]
    given[2]["fitness"][7] = value
    with pytest.raises(ValueError, match="fitness of generated 2 to be finite"):
        problem.score(given)
    assert all(case.outputs["fitness"].finite for case in problem.cases)


def test_another_shape_or_number_of_outputs_is_refused(
    problem: Problem, truth: list[Outputs]
) -> None:
    with pytest.raises(ValueError, match=r"generated 0 .* shape \(247,\) but it had shape \(5,\)"):
        problem.score([{"fitness": np.zeros(5)}, *truth[1:]])
    with pytest.raises(ValueError, match="zip"):
        problem.score(truth[:3])


def test_what_is_to_be_predicted_is_not_among_the_arguments(
    problem: Problem, truth: list[Outputs]
) -> None:
    for case, hidden in zip(problem.cases, truth, strict=True):
        wild_type, train, known, test, *training = case.args
        assert training == [2, 200]
        assert (train != wild_type).sum(axis=1).max() <= 2
        assert (test != wild_type).sum(axis=1).min() >= 3
        assert test.shape == (hidden["fitness"].size, wild_type.size)
        assert not np.isin(hidden["fitness"], known).any()


def test_the_order_of_the_test_variants_gives_nothing_away(
    problem: Problem, truth: list[Outputs]
) -> None:
    rows = [{"fitness": np.arange(float(t["fitness"].size))} for t in truth]
    assert abs(problem.score(rows)["spearman"]) < 0.2


def test_the_screen_is_the_same_metric_on_the_smallest_protein(
    problem: Problem, truth: list[Outputs]
) -> None:
    screen, full = problem.stages
    assert (screen.name, full.name) == ("smallest", "full")
    assert [case.name for case in screen.cases] == ["generated 0"]
    metrics = screen.score([{"fitness": -truth[0]["fitness"]}])
    assert metrics["score"] == pytest.approx(-0.7)
    assert metrics.keys() == full.score(truth).keys()


def test_the_declaration(problem: Problem) -> None:
    assert problem.direction is Direction.MAXIMISE
    assert problem.isolate_cases
    assert problem.modules == ("torch", "torch._dynamo")
    assert [case.name for case in problem.cases] == [f"generated {i}" for i in range(4)]
    assert (problem.limits.seconds, problem.limits.memory_bytes) == (60, 2048 << 20)
    assert all("MULTI-evolve's data sets" in known.source for known in problem.known_scores)
    assert not any(known.comparable for known in problem.known_scores)


def test_a_folder_of_the_user_takes_the_place_of_the_generated_data(tmp_path: Path) -> None:
    letters = "CDEFGHIKLMNP"
    singles = [f"A{i + 1}{new},{i}" for i, new in enumerate(letters)]
    triples = [f"A1C:A2D:A{i + 1}{new},{i}" for i, new in enumerate(letters) if i > 1]
    (tmp_path / "datasets").mkdir()
    table = "\n".join(["mutant,DMS_score", *singles, *triples]) + "\n"
    (tmp_path / "datasets" / "one.csv").write_text(table)
    summary = f"DMS_id,DMS_filename,target_seq\none,one.csv,{'A' * 12}\n"
    (tmp_path / "dataset_summary.csv").write_text(summary)
    problem = load_problem(shipped()["protein_fitness"], data=tmp_path)
    assert [stage.name for stage in problem.stages] == ["full"]  # one protein: nothing cheaper
    assert problem.cases[0].outputs["fitness"].shape == (10,)
    assert problem.cases[0].args[-2:] == (5, 2000)
    assert problem.limits.seconds == 1200
    (tmp_path / "dataset_summary.csv").unlink()
    with pytest.raises(UserError, match=r"has no dataset_summary\.csv"):
        load_problem(shipped()["protein_fitness"], data=tmp_path)
