"""Runs without a folder, one after the other with the same evaluators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inline import Inline

from bench.runs import temporary_run
from engine import config
from engine.evaluation import EvaluatorPool
from engine.parts import model_loader
from engine.problem import load_problem


def test_a_run_that_is_stopped_leaves_nothing_to_the_next_one() -> None:
    settings = config.resolve(
        ["model=mutation", "search.k=8", "budget.candidates=100", "budget.seconds=null"]
    )
    problem = load_problem(Path(settings.problem))
    with (
        model_loader(settings, syntax=Inline()) as load,
        EvaluatorPool(problem=problem, workers=1) as pool,
    ):
        parts: dict[str, Any] = {"model": load(), "pool": pool}
        for _ in range(2):
            made = temporary_run(
                settings=settings,
                problem=problem,
                stopped=lambda history: len(history.calls) >= 3,
                **parts,
            )
            history = made.history
            assert 0 < history.admitted < 100
            assert not history.pending and history.evaluated == history.admitted
