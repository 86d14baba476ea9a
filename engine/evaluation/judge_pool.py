"""A pool of judges, for problems whose evaluator is a process of its own in place of cases."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import ClassVar

from engine.core import Problem
from engine.evaluation.judge_lane import JudgeLane
from engine.evaluation.lane import Lane
from engine.evaluation.pool import EvaluatorPool, lane_folders


class JudgePool(EvaluatorPool):
    """Evaluates programs by the problem's judge, each in a box; else as `EvaluatorPool`."""

    WALLS: ClassVar[Sequence[str]] = (*EvaluatorPool.WALLS, "processes", "scratch")

    def _make_lanes(
        self, problem: Problem, workers: int, only: str | None, resources: ExitStack
    ) -> list[Lane]:
        assert problem.judge is not None
        lanes: list[Lane] = []
        for folder in lane_folders(workers, resources):
            lanes.append(JudgeLane(problem, problem.judge, folder, self._deliver, self._fail))
            resources.callback(lanes[-1].close)
        return lanes


def open_pool(
    *,
    problem: Problem,
    workers: int,
    cores: Sequence[int] | None = None,
    only: str | None = None,
) -> EvaluatorPool:
    """Return the pool that evaluates a problem's programs; see `EvaluatorPool` for the arguments.

    Raises:
        UserError: as `EvaluatorPool`.
    """
    kind = EvaluatorPool if problem.judge is None else JudgePool
    return kind(problem=problem, workers=workers, cores=cores, only=only)
