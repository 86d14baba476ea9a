"""The benchmark of the control plane: short runs of this version, and what is made of figures."""

from __future__ import annotations

import pytest

from bench.control import DEFAULTS, ROOT, compared, figures_of, run_of
from engine.problem import load_problem

SHORT = {**DEFAULTS, "candidates": "96", "seconds": "30"}


@pytest.mark.slow
def test_a_run_of_mutations_says_what_a_child_costs() -> None:
    figures = run_of(ROOT, model="mutation", options=SHORT, rate=1)
    assert figures["children_per_second"] > 0
    assert figures["loop_ms"] > 0 and figures["decoder_ms"] > 0


@pytest.mark.slow
def test_a_run_of_the_stand_in_says_what_a_step_costs_too() -> None:
    figures = run_of(ROOT, model="stand-in", options=SHORT, rate=500)
    assert figures["children_per_second"] > 0
    assert figures["work_median"] > 0 and figures["whole_p90"] > 0


def test_the_problem_can_be_run_with_the_real_evaluators() -> None:
    problem = load_problem(ROOT / "bench" / "control_problem")
    names: dict[str, object] = {}
    exec(problem.initial_program, names)
    run = names[problem.entry_point]
    assert callable(run)
    assert 0 < problem.score([run()])["score"] < 1


def test_refused_children_count() -> None:
    figures = figures_of(
        {
            **{"children": 150, "candidates": 100, "candidates_per_second": 20.0, "digest": ""},
            **{
                "loop_ms": 3.0,
                "decoder_ms": 6.0,
                "other_ms": 0.0,
                "processes_ms": 2.0,
                "loop_busy": 0.06,
            },
        }
    )
    assert figures["children_per_second"] == pytest.approx(30)
    assert figures["loop_ms"] == pytest.approx(2)


def test_versions_are_compared_round_by_round() -> None:
    rounds = [
        {"now": {"loop_ms": 2.0, "digest": "a"}, "baseline": {"loop_ms": 4.0, "digest": "a"}},
        {"now": {"loop_ms": 3.0, "digest": "a"}, "baseline": {"loop_ms": 2.0, "digest": "b"}},
    ]
    result = compared(rounds)
    assert result["ratio"]["loop_ms"] == {"median": 1.0, "low": 0.5, "high": 1.5}
    assert not result["same_children"]
    assert compared([rounds[0]])["same_children"]
