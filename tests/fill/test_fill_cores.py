"""On which cores fills run: the evaluators', and those of a model on the CPU, while it waits."""

from __future__ import annotations

import os
from collections.abc import Mapping

import pytest
from processes import zygotes

from engine import config
from engine.core import UserError
from engine.evaluation.lane import Lane
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


def test_strict_asks_for_the_walls_of_the_evaluators_of_fills_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = config.resolve(
        [
            *("problem=signal", "model=mutation", "evaluation.workers=1"),
            *("fill.model_cores=false", "evaluation.strict=true"),
        ]
    )
    asked: list[Lane] = []

    def walls(lane: Lane) -> Mapping[str, str]:
        asked.append(lane)
        return {} if len(asked) == 1 else {"files": "the kernel has none"}

    monkeypatch.setattr(Lane, "wait_walls", walls)
    with open_parts(settings, read_problem(settings)) as parts:
        with pytest.raises(UserError, match=r"files: the kernel has none.*evaluation.strict=false"):
            _ = parts.model
        assert len(asked) == 2
