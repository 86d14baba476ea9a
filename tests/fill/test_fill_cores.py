"""On which cores fills run: the evaluators', and those of a model on the CPU, while it waits."""

from __future__ import annotations

import os

import pytest
from processes import zygotes

from engine import config
from engine.parts import open_parts, read_problem


@pytest.mark.parametrize("shared", [True, False])
def test_fills_run_on_the_models_cores_too_where_nothing_else_wants_them(shared: bool) -> None:
    every = os.sched_getaffinity(0)
    settings = config.resolve(
        [
            *("problem=signal", "model=mutation", "evaluation.workers=1"),
            f"fill.model_cores={shared}",
        ]
    )
    with open_parts(settings, read_problem(settings)) as parts:
        idle = parts.idle_evaluators
        assert idle is not None
        idle.pool.check_walls(strict=False)  # they are warm, and give way from then on
        giving_way = [
            os.sched_getaffinity(each)
            for each in zygotes(os.getpid())
            if os.sched_getscheduler(each) == os.SCHED_IDLE
        ]
        assert idle.workers == len(giving_way) == (len(every) if shared else 1)
        assert set().union(*giving_way) == (every if shared else {*parts.cores})
    assert os.sched_getaffinity(0) == every
