from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from bench import bare, peer
from bench.evaluation import CONVOLUTION
from engine.problem import load_problem, shipped
from kernels import signal as kernel

WAYS = ("evaluate", "evaluate_arrays", "evaluate_process")


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    path = peer.lay_out(tmp_path_factory.mktemp("openevolve"))
    spec = importlib.util.spec_from_file_location("openevolve_evaluator", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("way", WAYS)
def test_every_way_scores_as_the_problem_does(
    evaluator: ModuleType, way: str, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(CONVOLUTION)
    expected = bare.evaluate(load_problem(shipped()["signal"]), CONVOLUTION)
    metrics = getattr(evaluator, way)(str(program))
    assert metrics["combined_score"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", ["def run_signal_processing(", "import nothing_like_it", "x = 1"])
def test_a_broken_program_scores_nothing(
    evaluator: ModuleType, way: str, text: str, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(text)
    metrics = getattr(evaluator, way)(str(program))
    assert metrics["combined_score"] == 0.0
    assert metrics["error"]


def test_both_counts_are_the_kernels(evaluator: ModuleType) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):  # small integers, so that there are samples at rest too
        output, clean = rng.integers(0, 3, size=(2, 40)).astype(np.float64)
        expected = (kernel.slope_changes(output), kernel.false_reversals(output, clean))
        assert evaluator.count_by_sample(output, clean) == expected
        assert evaluator.count_by_array(output, clean) == expected


def test_the_convolution_is_the_initial_filter() -> None:
    problem = load_problem(shipped()["signal"])
    initial = bare.evaluate(problem, problem.initial_program)
    assert bare.evaluate(problem, CONVOLUTION) == pytest.approx(initial, abs=1e-12)
