"""Running programs to see what a problem makes of them, one after the other on one evaluator."""

import contextlib
import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from engine.core import SECONDS, Direction, Evaluation, Outputs, Problem, Score, UserError
from engine.evaluation import open_pool
from engine.problem.places import place_of_callable

_ROUNDING = 1e-9
"""Relative difference up to which two scores are one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One evaluation of one program.

    Attributes:
        evaluation: the verdict.
        wall: seconds from handing the program over to the verdict.
        outputs: the arrays that were scored, for each case; empty if none came back.
    """

    evaluation: Evaluation
    wall: float
    outputs: tuple[Outputs, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Baseline:
    """What the initial program gets, once or several times, and so what would be a gain."""

    direction: Direction
    scores: tuple[float, ...]

    @property
    def best(self) -> float:
        """The best of its scores."""
        return min(self.scores, key=self.direction.key)

    @property
    def spread(self) -> float:
        """The largest score less the smallest."""
        return max(self.scores) - min(self.scores)

    def with_score(self, score: float) -> Self:
        """Return a baseline that knows one more of its scores."""
        return replace(self, scores=(*self.scores, score))

    def gains(self, score: float | None) -> bool:
        """Return whether a score is better than the initial program's, beyond its noise."""
        better = score is not None and self.direction.better(score, than=self.best)
        return better and self.differs(score)

    def differs(self, score: float | None) -> bool:
        """Return whether a score is another one than the initial program's, beyond its noise."""
        if score is None:
            return True
        return abs(score - self.best) > self.spread + _ROUNDING * abs(self.best)


class Trials:
    """Runs programs for a problem; a context manager."""

    def __init__(self, problem: Problem) -> None:
        """Start an evaluator.

        Raises:
            UserError: the problem's cases can't be checked.
        """
        self._began = time.perf_counter()
        self._outputs: tuple[Outputs, ...] = ()
        self._warm: float | None = None
        self._last = len(problem.stages) - 1
        stages = problem.stages
        if problem.judge is None:
            full = replace(stages[-1], score=self._recording(stages[-1].score))
            stages = (*stages[:-1], full)
        self._pool = open_pool(problem=replace(problem, stages=stages), workers=1)

    def missing_wall(self) -> str | None:
        """Wait for the evaluator; return what to say of a wall that its sandbox lacks, if any."""
        try:
            self._pool.check_walls(strict=True)
        except UserError as error:
            with contextlib.suppress(UserError):
                self._pool.check_walls(strict=False)  # programs are to run all the same
            return str(error)
        return None

    def run(self, program: str, *, stage: int | None = None) -> Trial:
        """Evaluate a program; ``stage`` is None for the full evaluation."""
        self._outputs = ()
        began = time.perf_counter()
        self._pool.submit(candidate_id="trial", program=program, stage=stage)
        ((_, evaluation),) = self._pool.completed(timeout=None)
        ended = time.perf_counter()
        if self._warm is None:
            self._warm = ended - self._began
        return Trial(evaluation=evaluation, wall=ended - began, outputs=self._outputs)

    @property
    def first_seconds(self) -> float:
        """Seconds from the start of the evaluator to the first verdict."""
        return self._warm or 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.close()

    def _recording(self, score: Score) -> Score:
        @functools.wraps(score)
        def recording(outputs: Sequence[Outputs]) -> Mapping[str, float]:
            self._outputs = copied(outputs)
            return score(outputs)

        return recording


def place_of_score(problem: Problem) -> str:
    """Return where a problem's score is computed: the line of a function, or a judge's folder."""
    if problem.judge is not None:
        return str(problem.folder)
    return place_of_callable(problem.score, otherwise=problem.folder)


def copied(outputs: Sequence[Outputs]) -> tuple[Outputs, ...]:
    """Return outputs that nobody else can change."""
    return tuple({name: np.array(array) for name, array in each.items()} for each in outputs)


def same(one: Sequence[Outputs], other: Sequence[Outputs]) -> bool:
    """Return whether two programs returned equal arrays, whatever time they took."""
    return len(one) == len(other) and all(
        a.keys() == b.keys()
        and all(
            np.array_equal(a[name], b[name], equal_nan=a[name].dtype.kind == "f")
            for name in a
            if name != SECONDS
        )
        for a, b in zip(one, other, strict=True)
    )
