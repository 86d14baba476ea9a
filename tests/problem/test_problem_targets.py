"""The targets of the problems that come with the project are ahead, by what is known."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.problem import load_problem, shipped

INITIAL = {
    "signal": 0.4990,
    "signal_causal": 0.4990,
    "circle_packing": 2.0986,
    "first_autocorr": 1.7411,
    "second_autocorr": 0.8299,
    "third_autocorr": 1.7275,
    "uncertainty": 0.3612,
    "erdos_min_overlap": 0.4432,
    "eplb": 0.13,
    "sequential_recommendation": 0.3147,
    "protein_fitness": 0.6656,
    "matrix_product": 1.0,
    "tour": 0.7785,
}
"""Scores of the initial programs, which the tests of the problems hold."""


@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_shipped_target_is_better_than_what_is_known(name: str) -> None:
    problem = load_problem(Path(shipped()[name]))
    target, better = problem.target, problem.direction.better
    assert target is not None
    assert better(target, than=INITIAL[name])
    for known in problem.known_scores:
        assert not known.comparable or not better(known.score, than=target)
    named = re.findall(r"target is ([0-9.]*[0-9])", problem.statement)
    assert all(float(each) == target for each in named), named
