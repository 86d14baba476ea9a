"""What makes fills and what evaluates them: both run where nothing else wants their cores."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass

from engine.core import Problem
from engine.evaluation import EvaluatorPool, Evaluators
from engine.fill.solutions import Solutions
from engine.settings import FillSettings
from engine.syntax.workers import SyntaxWorkers
from engine.tuning import import_cma

MOST_AHEAD = 512
"""Fills for each evaluator that may be under way."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IdleEvaluators:
    """The evaluators, what makes programs for them, and what they found.

    Attributes:
        pool: of the evaluators.
        workers: how many they are.
        syntax: processes that make the programs.
        solutions: behind their scores; None where the problem's solutions can't be improved.
    """

    pool: Evaluators
    workers: int
    syntax: Executor
    solutions: Solutions | None


@contextmanager
def open_idle(
    settings: FillSettings, problem: Problem, *, cores: Sequence[int], making: Sequence[int]
) -> Iterator[IdleEvaluators | None]:
    """Start the evaluators of a run's fills, and hold them; None where nothing fills.

    That is also so where a fill could change what is measured: a problem with a judge, or one whose
    cases have a process each, may score a program by its time.

    Args:
        settings: the run's.
        problem: the run's.
        cores: of the evaluators, one for each.
        making: cores on which programs are made, one process for each. Not those that a model
            uses: programs go out in the order in which they were asked for, so one that waits for
            such a core holds up all others.
    """
    if not settings.makers or problem.judge is not None or problem.isolate_cases:
        yield None
        return
    solutions, watched = None, problem
    if problem.improvement is not None:
        solutions = Solutions(problem.improvement, most=2 * MOST_AHEAD * len(cores))
        watched = solutions.watched(problem)
    with (
        EvaluatorPool(problem=watched, workers=len(cores), cores=cores, idle=True) as pool,
        SyntaxWorkers(count=len(making), cores=making, idle=True) as syntax,
    ):
        import_cma()  # while the evaluators warm up on their cores
        yield IdleEvaluators(pool=pool, workers=len(cores), syntax=syntax, solutions=solutions)
