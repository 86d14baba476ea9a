"""Improvements as fills: they find solutions and go on from the best one that is recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from filling import WANTED, Filling, drain, problem, settings
from verdicts import evaluate

from engine.core import (
    INITIAL,
    Improvement,
    Outputs,
    Verdict,
)
from engine.fill import IdleEvaluators
from engine.fill.improvements import Improvements
from engine.fill.solutions import Solutions


def test_improvements_find_a_solution_and_write_it_into_a_program(
    evaluators: IdleEvaluators,
) -> None:
    run = Filling(evaluators, settings("improvement", **{"fill.hops": 40}))
    run.until_quiet()
    assert len(run.fills) <= 40
    assert all(each.parent == INITIAL and not each.joins for each in run.fills)
    assert [each.id for each in run.state.search.best(0, most=9)] == [INITIAL]
    best = run.state.history.best
    assert best is not None and best.score is not None
    assert best.score > -0.15  # of -4.5 to begin with: each hop begins where the best one ended
    program = run.state.history.program_of(best.candidate)
    assert evaluate(evaluators.pool, program).score == best.score
    names: dict[str, object] = {}
    exec(program, names)  # our own text
    found = names["run"]()  # type: ignore[operator]
    assert -np.abs(found - WANTED).sum() == pytest.approx(best.score)


def test_improvements_go_on_from_the_best_recorded_solution(evaluators: IdleEvaluators) -> None:
    given = settings("improvement", **{"fill.hops": 30})
    before = Filling(evaluators, given)
    before.until(judged=15)
    drain(evaluators)
    best = before.state.history.best_score
    after = Filling(evaluators, given, events=before.events)
    after.until_quiet()
    assert [each.sample for each in after.fills] == [*range(len(after.fills))]
    later = [
        after.state.history.verdicts[each.id].score for each in after.fills[len(before.fills) :]
    ]
    assert later
    # Hops from the initial program would begin at -4.5, two away from where these begin.
    assert best is not None and max(each for each in later if each is not None) > best - 1.0


def test_after_a_resume_a_look_undoes_no_better_hop(evaluators: IdleEvaluators) -> None:
    given, made = settings("improvement", **{"fill.hops": 30}), problem()
    assert made.improvement is not None
    before = Filling(evaluators, given)
    before.until(judged=3)
    (out,) = before.until_out()
    drain(evaluators)
    history = before.state.history
    solutions = Solutions(made.improvement, most=9)
    hops = Improvements(
        before.state.search,
        history=history,
        settings=given,
        contract=made.improvement,
        entry_point=made.entry_point,
        solutions=solutions,
        workers=2,
        seed=1,
    )
    look = hops.propose()  # the hop that is out is evaluated again beside it, and comes first
    assert look is not None and look.is_known
    perfect = solutions.watched(made).stages[-1].score([{"numbers": WANTED}])["score"]
    hops.tell(history.fills[out].parent, history.fills[out].sample, perfect)
    hops.tell(look.parent, look.sample, history.best_score)
    following = hops.propose()
    assert following is not None
    program = following.make()
    assert program is not None and "numpy.array([3.0, 2.0, 6.0])" in program.text


def test_solutions_that_no_program_could_hold_are_not_kept() -> None:
    def scored(outputs: Sequence[Outputs]) -> Mapping[str, float]:
        return {"score": float(outputs[0]["numbers"].size)}

    solutions = Solutions(Improvement(solution=("numbers",), effort=1), most=9)
    made = problem()
    watched = solutions.watched(
        replace(made, stages=(replace(made.stages[0], score=scored),))
    ).stages[0]
    for size in (2000, 2001):
        assert watched.score([{"numbers": np.zeros(size)}]) == {"score": size}
    assert solutions.of(2000.0) is not None and solutions.of(2001.0) is None


def test_a_program_whose_perturbation_fails_costs_its_hops_and_no_more(
    evaluators: IdleEvaluators,
) -> None:
    run = Filling(evaluators, settings("improvement", **{"fill.hops": 5}))
    broken = run.state.history.program_of(INITIAL).replace("(numbers + 0.1 ", "(undefined + 0.1 ")
    first = run.events[1]
    assert isinstance(first, Verdict)
    run = Filling(
        evaluators,
        settings("improvement", **{"fill.hops": 5}),
        events=[run.events[0], replace(first, program=broken)],
    )
    run.until_quiet()
    assert len(run.fills) == 5
    assert run.state.history.filled["improvement"].valid == 0
