"""The solutions behind the scores of idle evaluators.

A verdict holds no arrays. So the problem's scoring, which sees them, is wrapped: it keeps the
solutions of the last scores, twice as many as there can be evaluations whose verdict nobody took.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.core import Array, Improvement, Outputs, Problem, Score

_MOST_NUMBERS = 2000
"""Of a solution that is kept; a program that goes on with it holds all of them."""


class Solutions:
    """Keeps the last solutions; any thread may use it."""

    def __init__(self, improvement: Improvement, *, most: int) -> None:
        """Keep none yet, and ``most`` later."""
        self._names = improvement.solution
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[float, tuple[Array, ...]] = OrderedDict()

    def watched(self, problem: Problem) -> Problem:
        """Return the problem with a scoring of the full evaluation that keeps solutions here."""
        full = problem.stages[-1]
        stage = replace(full, score=self._keeping(full.score))
        return replace(problem, stages=(*problem.stages[:-1], stage))

    def of(self, score: float) -> tuple[Array, ...] | None:
        """Return a solution with exactly this score.

        None if none of the last ones has it, or it is of too many numbers to be written down.
        """
        with self._lock:
            return self._kept.get(score)

    def _keeping(self, score: Score) -> Score:
        def keeping(outputs: Sequence[Outputs]) -> Mapping[str, float]:
            metrics = score(outputs)
            solution = [outputs[0][name] for name in self._names]
            if "score" in metrics and sum(each.size for each in solution) <= _MOST_NUMBERS:
                self._keep(float(metrics["score"]), tuple(each.copy() for each in solution))
            return metrics

        return keeping

    def _keep(self, score: float, solution: tuple[Array, ...]) -> None:
        with self._lock:
            self._kept[score] = solution
            self._kept.move_to_end(score)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
