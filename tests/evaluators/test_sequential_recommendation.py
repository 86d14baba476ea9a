"""The ``sequential_recommendation`` problem: baselines, and every way to cheat its metrics."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.core import Direction, Outputs, Problem, Rejected, UserError
from engine.core.bundle import bundle_of, files_of
from engine.problem import load_problem, shipped
from engine.syntax.blocks import outline
from evaluators.sequential_recommendation.data import generate_interactions
from evaluators.sequential_recommendation.evaluator import with_data

Run = Callable[[str, Problem], list[Outputs]]

POPULAR = """
import numpy as np

def recommend(items, times, watch_ratios, starts, num_items, k, *size):
    order = np.argsort(-np.bincount(items, minlength=num_items), kind="stable")[:k]
    return {"recommendations": np.tile(order, (len(starts) - 1, 1))}
"""
FOLLOWERS = """
import numpy as np

def recommend(items, times, watch_ratios, starts, num_items, k, *size):
    follows = np.tile(np.bincount(items, minlength=num_items) / len(items), (num_items, 1))
    inside = np.setdiff1d(np.arange(1, len(items)), starts)
    np.add.at(follows, (items[inside - 1], items[inside]), 0.5)
    return {"recommendations": np.argsort(-follows[items[starts[1:] - 1]], kind="stable")[:, :k]}
"""


@pytest.fixture(autouse=True, scope="module")
def torch_threads() -> Iterator[None]:
    """Give torch its threads back: the initial program, run in this process, sets one."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def problem() -> Problem:
    return load_problem(shipped()["sequential_recommendation"])


def lists(problem: Problem) -> np.ndarray:
    """Return allowed lists: the first k items for every user."""
    users, k = problem.cases[0].outputs["recommendations"].shape
    return np.tile(np.arange(k), (users, 1))


@pytest.mark.slow
def test_the_initial_program_beats_popularity(problem: Problem, run: Run) -> None:
    metrics = problem.score(run(problem.initial_program, problem))
    assert metrics["score"] == pytest.approx(0.287, abs=0.03)  # sums depend on the machine
    assert metrics["score"] > 2.5 * problem.score(run(POPULAR, problem))["score"]


def test_only_the_model_may_change(problem: Problem) -> None:
    whole = outline(problem.initial_program)
    assert [file.name for file in whole.files] == ["harness.py", "model.py"]
    assert [file.name for file in whole.open_files] == ["model.py"]


def with_model(problem: Problem, model: str) -> str:
    return bundle_of({**files_of(problem.initial_program), "model.py": model})


MEAN = """
import sys

import torch
from torch import nn

class Encoder(nn.Module):
    def __init__(self, *, num_items, length, width, blocks):
        super().__init__()
        SET
        self.items = nn.Embedding(num_items + 1, width)
        self.seen = []

    def forward(self, items, times, watch_ratios):
        self.seen.append((items.shape, self.training, times.min(), watch_ratios.min()))
        return self.items(items)

    def score(self, states, items):
        vectors = self.items(items)
        return states @ vectors.T if items.dim() == 1 else (states[:, None] * vectors).sum(-1)
"""
SETS_NUMBERS = "h = sys.modules['harness']; h.EPOCHS, h.BATCH, h.NEGATIVES = 1, 4, 1000"


def test_numbers_of_the_harness_that_a_model_sets_change_nothing(
    problem: Problem, run: Run
) -> None:
    screen = replace(problem, stages=problem.stages[:1])
    plain, sets = (
        run(with_model(problem, MEAN.replace("SET", does)), screen)[0]["recommendations"]
        for does in ("pass", SETS_NUMBERS)
    )
    np.testing.assert_array_equal(plain, sets)


def test_the_harness_trains_16_epochs_on_next_videos_and_ranks_by_all_of_a_history(
    problem: Problem, run: Run
) -> None:
    told = MEAN.replace("SET", "pass").replace("self.seen = []", "self.seen = LOG")
    log: list[tuple[Any, ...]] = []
    screen = replace(problem, stages=problem.stages[:1])
    builtins_log = "import builtins\nLOG = builtins.brood_test_log\n"
    builtins.brood_test_log = log  # type: ignore[attr-defined]
    try:
        run(with_model(problem, builtins_log + told), screen)
    finally:
        del builtins.brood_test_log  # type: ignore[attr-defined]
    trained = [shape for shape, training, *_ in log if training]
    assert len(trained) == 16 * -(-125 // 16)
    assert {shape[1] for shape in trained} == {49}
    assert [shape for shape, training, *_ in log if not training] == [(64, 50), (61, 50)]
    assert min(each[2] for each in log) == 0  # seconds since the first video
    assert min(each[3] for each in log) >= 0


def test_the_initial_program_repeats_itself(problem: Problem, run: Run) -> None:
    screen = replace(problem, stages=problem.stages[:1])
    one, again = (run(problem.initial_program, screen)[0] for _ in range(2))
    np.testing.assert_array_equal(one["recommendations"], again["recommendations"])


def test_simple_programs_score_as_measured(problem: Problem, run: Run) -> None:
    popular = problem.score(run(POPULAR, problem))
    assert popular["score"] == pytest.approx(0.09865, abs=5e-6)
    followers = problem.score(run(FOLLOWERS, problem))
    assert 0.35 < followers["score"] < 0.38  # there is room above the initial program


def test_the_score_is_the_mean_of_its_three_metrics(problem: Problem, run: Run) -> None:
    metrics = problem.score(run(POPULAR, problem))
    parts = [metrics[name] for name in ("ndcg_10", "hit_rate_10", "mrr")]
    assert metrics["score"] == pytest.approx(np.mean(parts), rel=1e-14)


def test_the_targets_alone_score_1(problem: Problem) -> None:
    task = with_data(None).task
    best = lists(problem)
    for row, target in zip(best, task.targets, strict=True):
        rest = row[row != target]
        row[:] = np.concatenate([[target], rest])[: row.size]
    metrics = problem.score([{"recommendations": best}])
    assert metrics == dict.fromkeys(metrics, 1.0)


def test_the_targets_are_not_among_the_arguments(problem: Problem) -> None:
    task = with_data(None).task
    items, times, ratios, starts, num_items, k, *size = problem.cases[0].args
    assert items.size == times.size == ratios.size == starts[-1]
    assert (num_items, k, *size) == (300, 100, 50, 32, 1)
    lengths = np.bincount(generate_interactions().users)
    np.testing.assert_array_equal(np.diff(starts), lengths - 1)  # each user's last one is gone
    for argument in (items, times, ratios, starts):
        assert not np.shares_memory(argument, task.targets)


def test_a_repeated_item_is_rejected(problem: Problem) -> None:
    given = lists(problem)
    given[3] = 7  # the same item at every place would hit at every cutoff
    with pytest.raises(Rejected, match=r"list of user 3 has item 7 twice, again at \[1\]"):
        problem.score([{"recommendations": given}])


@pytest.mark.parametrize("item", [-1, 300, 2**62, -(2**63)])
def test_an_item_out_of_range_is_rejected(problem: Problem, item: int) -> None:
    given = lists(problem)
    given[-1, 99] = item
    with pytest.raises(Rejected, match=rf"user 499 has {item} at \[99\]; items are 0 to 299"):
        problem.score([{"recommendations": given}])


@pytest.mark.parametrize("shape", [(500, 300), (500, 99), (499, 100), (50000,), (500, 100, 1)])
def test_another_shape_is_refused(problem: Problem, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"to have shape \(500, 100\) but it had shape"):
        problem.score([{"recommendations": np.zeros(shape, dtype=np.int64)}])


def test_the_contract_asks_for_whole_finite_numbers(problem: Problem) -> None:
    spec = problem.cases[0].outputs["recommendations"]
    assert (spec.shape, spec.dtype, spec.finite) == ((500, 100), "int64", True)


def test_strided_lists_score_like_their_copies(problem: Problem) -> None:
    given = lists(problem)
    wide = np.repeat(given, 2, axis=1)[:, ::2]
    expected = problem.score([{"recommendations": given}])
    assert problem.score([{"recommendations": wide}]) == expected


def test_the_screen_is_the_same_metric_on_a_quarter_of_the_users(problem: Problem) -> None:
    screen, full = problem.stages
    assert (screen.name, full.name) == ("quarter", "full")
    assert screen.cases[0].outputs["recommendations"].shape == (125, 100)
    given = lists(problem)
    of_screen, of_full = (
        stage.score([{"recommendations": given[:users]}])
        for stage, users in ((screen, 125), (full, 500))
    )
    assert of_screen.keys() == of_full.keys()
    rest = with_data(None).task.targets[125:]
    assert of_full["hit_rate_10"] == pytest.approx(
        0.25 * of_screen["hit_rate_10"] + 0.75 * np.mean(rest < 10)
    )


def test_the_declaration(problem: Problem) -> None:
    assert problem.direction is Direction.MAXIMISE
    assert problem.modules == ("torch", "torch._dynamo")
    assert (problem.limits.seconds, problem.limits.memory_bytes) == (60, 2048 << 20)
    assert all("on KuaiRec itself" in known.source for known in problem.known_scores)
    assert not any(known.comparable for known in problem.known_scores)


def test_a_file_of_the_user_takes_the_place_of_the_generated_data(tmp_path: Path) -> None:
    path = tmp_path / "big_matrix.csv"
    rows = [f"{user},{video},{10 * user + video},0.5" for user in (1, 2) for video in (3, 4, 5)]
    path.write_text("\n".join(["user_id,video_id,timestamp,watch_ratio", *rows]) + "\n")
    problem = load_problem(shipped()["sequential_recommendation"], data=path)
    assert problem.cases[0].outputs["recommendations"].shape == (2, 3)
    assert problem.cases[0].args[-3:] == (1024, 128, 4)  # the paper's
    assert problem.limits.seconds == 1200
    metrics = problem.score([{"recommendations": np.array([[2, 1, 0], [0, 2, 1]])}])
    assert metrics["mrr"] == pytest.approx(0.75)
    path.write_text("user_id\n1\n")
    with pytest.raises(UserError, match="no column 'video_id'"):
        load_problem(shipped()["sequential_recommendation"], data=path)
