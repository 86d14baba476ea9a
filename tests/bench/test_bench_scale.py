"""The simulation of scale, where its answer can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.scale.__main__ import deaths, iteration_seconds
from bench.scale.costs import Cluster, Costs
from bench.scale.simulation import simulated

NOTHING = Costs(
    call=0.0,
    beside=0.0,
    loop=0.0,
    evaluation=0.0,
    commit=0.0,
    commits=0.0,
    lookup=0.0,
    read=0.0,
    report=0.0,
)
ONE = Cluster(workers=1, islands=1, evaluators=1, candidates=4, every=0)


def an_hour(costs: Costs, cluster: Cluster, *, seconds: float = 500) -> float:
    found = simulated(costs, cluster, seeds=1, warm=50, seconds=seconds)
    rate = found["candidates_an_hour"]
    assert isinstance(rate, float)
    return rate


def test_an_island_alone_does_one_step_after_the_other() -> None:
    # 1 s of model, 0.1 of loop, 2 transactions of 0.05, 4 evaluations of 0.2: 2 s for 4 candidates.
    costs = replace(NOTHING, call=1, loop=0.1, evaluation=0.2, commit=0.05, commits=2)
    assert an_hour(costs, ONE) == pytest.approx(2 * 3600, rel=0.02)


def test_evaluators_work_side_by_side() -> None:
    # 1 s of model, then 4 evaluations of 0.5 s on 4 evaluators: 1.5 s for 4 candidates.
    costs = replace(NOTHING, call=1, evaluation=0.5)
    assert an_hour(costs, replace(ONE, evaluators=4)) == pytest.approx(4 / 1.5 * 3600, rel=0.02)


def test_islands_of_a_worker_wait_for_its_loop_in_turn() -> None:
    # 16 islands want 0.5 s of one loop for each call of 1 s: the loop is never idle.
    costs = replace(NOTHING, call=1, loop=0.5)
    assert an_hour(costs, replace(ONE, islands=16)) == pytest.approx(4 / 0.5 * 3600, rel=0.02)


def test_workers_that_share_nothing_scale_and_those_that_share_a_store_do_not() -> None:
    costs = replace(NOTHING, call=1, commit=0.1, commits=2)
    alone = an_hour(replace(costs, commit=0.0), ONE)
    many = replace(ONE, workers=16)
    assert an_hour(replace(costs, commit=0.0), many) == pytest.approx(16 * alone, rel=0.02)
    # One transaction at a time: 0.2 s of the store for 4 candidates.
    bound = an_hour(costs, replace(many, store=1))
    assert bound == pytest.approx(4 / 0.2 * 3600, rel=0.02)
    assert simulated(costs, replace(many, store=1), seeds=1, warm=50, seconds=500)[
        "store_busy"
    ] == pytest.approx(1.0, abs=0.01)


def test_a_mean_of_candidates_may_be_a_fraction() -> None:
    costs = replace(NOTHING, call=1)
    half = replace(ONE, workers=8, candidates=2.5)
    assert an_hour(costs, half) == pytest.approx(8 * 2.5 * 3600, rel=0.03)


def test_unequal_workers_wait_for_each_other_at_migrations() -> None:
    costs = replace(NOTHING, call=1)
    apart = Cluster(workers=8, islands=1, evaluators=1, candidates=4, every=0, spread=0.5)
    together = replace(apart, every=2)
    assert an_hour(costs, together) < 0.9 * an_hour(costs, apart)
    found = simulated(costs, together, seeds=1, warm=50, seconds=500)
    assert found["waiting_for_migrants"] > 0.05


def test_a_worker_that_dies_is_missed_until_another_one_has_its_model() -> None:
    # A look half a second later, which asks 50 workers for 10 ms each, then 40 s of loading: 41 s
    # of every 10 hours.
    found = deaths(replace(NOTHING, start=40, report=0.01), workers=50, life=10)
    assert found == {"seconds": 41.0, "share": pytest.approx(41 / 36_000, abs=1e-6)}


def test_an_iteration_lasts_as_long_as_its_worker_or_the_store_needs() -> None:
    costs = replace(NOTHING, call=1, beside=0.5, loop=0.1, evaluation=0.2, commit=0.05, commits=2)
    costs = replace(costs, lookup=0.01, read=0.1)
    few = Cluster(workers=1, islands=2, evaluators=4, candidates=4, every=10, migrants=2, store=1)
    # 1 s and 0.5 for the other island's call, and of both 0.1 s of loop and 4 evaluations on 4.
    assert iteration_seconds(costs, few) == pytest.approx(1.5 + 2 * (0.1 + 0.2))
    # Of 40 islands 2 transactions, 4 questions and half a read, one at a time.
    many = replace(few, workers=20)
    assert iteration_seconds(costs, many) == pytest.approx(40 * (0.1 + 0.04 + 0.05))


def test_an_island_that_waits_for_the_store_does_not_wait_longer_than_there_is_time() -> None:
    costs = replace(NOTHING, lookup=1.0)  # 4 at once, one at a time: they wait 0, 1, 2 and 3 s
    found = simulated(costs, replace(ONE, store=1), seeds=1, warm=40, seconds=400)
    assert found["waiting_for_store"] == pytest.approx(1.5 / 4, rel=0.02)
