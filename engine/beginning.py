"""The programs that a run begins with, and what is refused before there is a run.

Covers: evaluating the initial program and those of a pool, and whether the first one can be a
parent. Does not cover where a pool's programs come from: ``engine.pool``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from engine.core import INITIAL, Feature, Problem, UserError
from engine.evaluation import Cascade
from engine.inference import Model
from engine.parts import Parts
from engine.pool import PoolReading, seeds
from engine.prompts import Operator
from engine.restore import archive_features, new_cascade
from engine.search.features import cell_of, measure
from engine.settings import RunSettings
from engine.store import Event, Verdict
from engine.syntax import MAX_DEPTH, read


def first_events(settings: RunSettings, parts: Parts, reading: PoolReading) -> list[Event]:
    """Evaluate what a run begins with: the initial program, and those of its pool.

    Args:
        settings: the run's.
        parts: that it works with.
        reading: what was read of the pool's sources.

    Returns:
        The events that record the programs and their verdicts.

    Raises:
        UserError: the initial program has no score, no cell in the archives, or no room in the
            model's context.
    """
    problem, features = parts.problem, archive_features(settings, parts.problem)
    first = _first_verdict(new_cascade(settings, problem, parts.evaluators), problem, features)
    return [
        first,
        *seeds(
            settings,
            reading,
            problem=problem,
            evaluators=parts.evaluators,
            fits=_room(problem, parts.model, parts.operators(settings)),
            features=features,
        ),
    ]


def _first_verdict(
    cascade: Cascade, problem: Problem, features: Sequence[Feature] | None
) -> Verdict:
    """Evaluate the initial program at every stage; a stage that it fails would fail all others."""
    cascade.submit(candidate_id=INITIAL, program=problem.initial_program, iteration=-1)
    ((_, evaluation),) = cascade.completed(timeout=None)
    if evaluation.score is None:
        raise UserError(
            f"the initial program of {problem.folder} fails: {evaluation.message}; a run needs one "
            "with a score"
        )
    program = read(problem.initial_program)
    if program is None:
        raise UserError(
            f"the initial program of {problem.folder} is nested over {MAX_DEPTH} levels; flatten it"
        )
    cell = cell_of(program, evaluation, features=features)
    verdict = Verdict(candidate=INITIAL, evaluation=evaluation, program=program.text, cell=cell)
    _check_features(features, problem, verdict)
    return verdict


def _room(
    problem: Problem, model: Model, operators: Mapping[str, Operator]
) -> Callable[[str], bool]:
    """Return what says whether every prompt has room for a program; the initial one needs it."""
    rooms = {name: operator.longest_parent for name, operator in operators.items()}
    name, longest = min(rooms.items(), key=lambda each: each[1])
    tokens = len(model.encode(problem.initial_program))
    if tokens > longest:
        raise UserError(
            f"the initial program of {problem.folder} has {tokens} tokens, and a prompt of "
            f"operator {name} has room for {max(0, longest)} beside its task; raise "
            "model.max_model_len"
        )
    return lambda program: len(model.encode(program)) <= longest


def _check_features(features: Sequence[Feature] | None, problem: Problem, verdict: Verdict) -> None:
    """Refuse an archive in which the initial program has no cell: nothing could be a parent."""
    if features is None or verdict.cell is not None:
        return
    values = measure(read(problem.initial_program), metrics=verdict.evaluation.metrics)
    lacks = next(each.name for each in features if math.isnan(values.get(each.name, math.nan)))
    raise UserError(
        f"the initial program of {problem.folder} has no feature {lacks!r}; it has "
        f"{', '.join(sorted(values))}: give one of them in problem.yaml"
    )
