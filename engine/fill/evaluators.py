"""Evaluators of fills: they run programs where nothing else wants their cores."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from engine.core import Problem
from engine.evaluation import EvaluatorPool, Evaluators
from engine.fill.solutions import Solutions
from engine.settings import FillSettings
from engine.tuning import import_cma

MOST_AHEAD = 512
"""Fills for each evaluator that may be under way."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IdleEvaluators:
    """The evaluators, and what they found.

    Attributes:
        pool: of the evaluators.
        workers: how many they are.
        solutions: behind their scores; None where the problem's solutions can't be improved.
    """

    pool: Evaluators
    workers: int
    solutions: Solutions | None


@contextmanager
def open_idle(
    settings: FillSettings, problem: Problem, *, cores: Sequence[int]
) -> Iterator[IdleEvaluators | None]:
    """Start the evaluators of a run's fills, and hold them; None where nothing fills.

    That is also so where a fill could change what is measured: a problem with a judge, or one whose
    cases have a process each, may score a program by its time.

    Args:
        settings: the run's.
        problem: the run's.
        cores: of the evaluators, one for each.
    """
    if not settings.makers or problem.judge is not None or problem.isolate_cases:
        yield None
        return
    solutions, watched = None, problem
    if problem.improvement is not None:
        solutions = Solutions(problem.improvement, most=2 * MOST_AHEAD * len(cores))
        watched = solutions.watched(problem)
    with EvaluatorPool(problem=watched, workers=len(cores), cores=cores, idle=True) as pool:
        import_cma()  # while the evaluators warm up on their cores
        yield IdleEvaluators(pool=pool, workers=len(cores), solutions=solutions)
