"""What a run works with: problem, evaluators, syntax workers and model, from its settings.

Covers: which cores they have, the order in which they start, and ending them. Runs of one problem
and one model may share them, one after the other. Does not cover what a run does with them:
``engine.assembly``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from engine.core import Problem
from engine.evaluation import EvaluatorPool, evaluator_cores, model_cores
from engine.inference import Model, prepare
from engine.model import model_loader
from engine.problem import load_problem
from engine.prompts import Operator, make_operators
from engine.settings import RunSettings
from engine.syntax.workers import CORES_EACH, SyntaxWorkers

_log = logging.getLogger("brood")


class Parts:
    """The parts of a run; a model takes minutes to load, so it is loaded when it is asked for."""

    def __init__(
        self,
        *,
        problem: Problem,
        evaluators: EvaluatorPool,
        syntax: Executor,
        load: Callable[[], Model],
    ) -> None:
        """Join the parts, which belong to the caller.

        Args:
            problem: that the evaluators evaluate.
            evaluators: run and score programs.
            syntax: processes that parse what the model answers.
            load: returns the model; called once.
        """
        self.problem = problem
        self.evaluators = evaluators
        self.syntax = syntax
        self._load = load
        self._model: Model | None = None

    @property
    def model(self) -> Model:
        """The language model."""
        if self._model is None:
            self._model = self._load()
        return self._model

    def operators(self, settings: RunSettings) -> Mapping[str, Operator]:
        """Return the operators of a run's mix, by name."""
        weights = settings.search.operators
        return make_operators(
            [name for name, weight in weights.items() if weight > 0],
            problem=self.problem,
            tokenizer=self.model,
            max_tokens=settings.model.max_tokens,
            prompts=settings.prompts,
        )


def read_problem(settings: RunSettings) -> Problem:
    """Return the problem of a run."""
    data = None if settings.data is None else Path(settings.data)
    return load_problem(Path(settings.problem), data=data)


@contextmanager
def open_parts(settings: RunSettings, problem: Problem) -> Iterator[Parts]:
    """Start what a run of a problem works with, and hold it.

    The evaluators get cores of their own. This process, and every thread that it starts from here
    on, keeps to the other cores, if there are any.

    Raises:
        UserError: the model's weights are not on this machine, or a wall is missing that
            ``evaluation.strict`` asks for.
    """
    cores = evaluator_cores(settings.evaluation.workers)
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, model_cores(cores))
    prepare(threads=settings.model.threads, kv_cache_gb=settings.model.kv_cache_gb)
    is_mutation = settings.model.kind == "mutation"  # of which nothing else takes a core's time
    with (
        SyntaxWorkers(
            count=len(every) if is_mutation else -(-len(every) // CORES_EACH), cores=every
        ) as syntax,
        model_loader(settings, syntax=syntax) as load,  # what it starts does so while the rest does
        EvaluatorPool(problem=problem, workers=len(cores), cores=cores) as evaluators,
        ExitStack() as stack,
    ):

        def checked_load() -> Model:
            _check_sandbox(settings, evaluators, cores)  # before the minutes that a model may take
            return stack.enter_context(closing(load()))

        yield Parts(problem=problem, evaluators=evaluators, syntax=syntax, load=checked_load)


def _check_sandbox(settings: RunSettings, pool: EvaluatorPool, cores: Sequence[int]) -> None:
    """Say where candidates run and behind which walls; refuse to go on if the user wants more."""
    pool.check_walls(strict=settings.evaluation.strict)
    shared = ", which the model uses too" if set(cores) & os.sched_getaffinity(0) else ""
    _log.info("evaluators on cores %s%s", ", ".join(map(str, sorted(set(cores)))), shared)
