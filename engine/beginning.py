"""The programs that a run begins with, and what is refused before there is a run.

Covers: evaluating the initial program and those of a pool, and whether the first one can be a
parent. Does not cover where a pool's programs come from: ``engine.pool``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from engine.core import INITIAL, Feature, Problem, UserError
from engine.evaluation import Cascade, EvaluatorPool
from engine.inference import Model
from engine.model import make_embedder
from engine.pool import PoolReading, seeds
from engine.prompts import Operator
from engine.search.features import cell_of, measure
from engine.settings import RunSettings
from engine.store import Event, Verdict


def first_verdict(
    *, cascade: Cascade, problem: Problem, features: Sequence[Feature] | None
) -> Verdict:
    """Evaluate the initial program at every stage: a stage that it fails would fail them all.

    Args:
        cascade: that knows nothing.
        problem: whose initial program it is.
        features: of the run's archives; None for a run without.

    Raises:
        UserError: it has no score, or no cell in the archives.
    """
    cascade.submit(candidate_id=INITIAL, program=problem.initial_program, iteration=-1)
    ((_, evaluation),) = cascade.completed(timeout=None)
    if evaluation.score is None:
        raise UserError(
            f"the initial program of {problem.folder} fails: {evaluation.message}; a run needs one "
            "with a score"
        )
    program = problem.initial_program
    cell = cell_of(program, evaluation, features=features)
    verdict = Verdict.of(INITIAL, evaluation, program=program, cell=cell)
    _check_features(features, problem, verdict)
    return verdict


def check_length(*, problem: Problem, model: Model, operators: Mapping[str, Operator]) -> None:
    """Check that the task leaves the initial program room in the model's context.

    Raises:
        UserError: it does not.
    """
    tokens = len(model.encode(problem.initial_program))
    for name, operator in operators.items():
        if tokens > operator.longest_parent:
            raise UserError(
                f"the initial program of {problem.folder} has {tokens} tokens, and a prompt of "
                f"operator {name} has room for {max(0, operator.longest_parent)} beside its task; "
                "raise model.max_model_len"
            )


def evaluated_seeds(
    *,
    settings: RunSettings,
    reading: PoolReading,
    problem: Problem,
    pool: EvaluatorPool,
    model: Model,
    operators: Mapping[str, Operator],
    features: Sequence[Feature] | None,
) -> list[Event]:
    """Evaluate the programs that the run is to begin with besides the initial one.

    Args:
        settings: the run's.
        reading: what was read of the pool's sources.
        problem: for which the programs are.
        pool: evaluates them.
        model: tells how long they are, and may embed them.
        operators: whose prompts they have to fit.
        features: of the run's archives; None for a run without.

    Returns:
        The events that record them and their verdicts.
    """
    longest = min(operator.longest_parent for operator in operators.values())
    return seeds(
        settings.pool,
        reading,
        problem=problem,
        evaluators=pool,
        embedder=make_embedder(settings.pool.embedding, model),
        fits=lambda program: len(model.encode(program)) <= longest,
        islands=settings.islands.count,
        seed=settings.seed,
        features=features,
    )


def _check_features(features: Sequence[Feature] | None, problem: Problem, verdict: Verdict) -> None:
    """Refuse an archive in which the initial program has no cell: nothing could be a parent."""
    if features is None or verdict.cell is not None:
        return
    values = measure(problem.initial_program, metrics=verdict.metrics)
    lacks = next(each.name for each in features if math.isnan(values.get(each.name, math.nan)))
    raise UserError(
        f"the initial program of {problem.folder} has no feature {lacks!r}; it has "
        f"{', '.join(sorted(values))}: give one of them in problem.yaml"
    )
