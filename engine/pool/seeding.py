"""A run's beginning from a pool: read, evaluate, cluster, and say who starts where.

TurboEvolve, section 3.3: the pool's programs are evaluated as all others are, embedded, clustered
into as many clusters as there are islands, and mixed a little (``allocation``). Every program that
was evaluated is recorded with its verdict, also one that failed, or that no island took.

Does not cover how an island takes them in: ``engine.search``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from engine import program as programs
from engine.core import Evaluation, Feature, Problem
from engine.embedding import Embedder
from engine.evaluation import EvaluatorPool
from engine.pool.allocation import allocate
from engine.pool.reading import PoolProgram, PoolReading, Unusable, judged, read_pool
from engine.search.features import cell_of
from engine.settings import PoolSettings
from engine.store import Event, Seed, Verdict

_log = logging.getLogger("brood")


def read_sources(settings: PoolSettings, *, problem: Problem) -> PoolReading:
    """Return what the pool's sources hold; nothing if there are none.

    Raises:
        UserError: a source is no folder, or can't be listed.
    """
    sources = [Path(each) for each in settings.sources]
    return read_pool(sources, problem=problem, most_of_run=settings.most_of_run)


def seeds(
    settings: PoolSettings,
    reading: PoolReading,
    *,
    problem: Problem,
    evaluators: EvaluatorPool,
    embedder: Embedder,
    fits: Callable[[str], bool],
    islands: int,
    seed: int,
    features: Sequence[Feature] | None,
) -> list[Event]:
    """Return the events that record a pool's programs; none of an empty pool.

    What is left out is logged with the reason.

    Args:
        settings: how the pool is shared out.
        reading: what its sources hold.
        problem: that the programs are for.
        evaluators: nobody else uses them meanwhile.
        embedder: of the programs.
        fits: whether a prompt has room for a program.
        islands: how many there are.
        seed: the run's.
        features: of the islands' archives; None where there are none.
    """
    if not (reading.programs or reading.unusable):
        return []
    pool, refused = _admitted(reading.programs, problem, fits)
    evaluations = _evaluated(pool, evaluators)
    valid, failed = judged(pool, evaluations)
    for each in (*reading.unusable, *refused, *failed):
        _log.warning("pool: %s is left out: %s", each.name, each.reason)
    allocation = allocate(
        valid,
        embedder.embed([each.program for each in valid]),
        islands=islands,
        mixing=settings.mixing,
        elites=settings.elites,
        direction=problem.direction,
        seed=seed,
    )
    _log.info("pool: %d programs, %d with a score", len(pool), len(valid))
    homes = {
        name: tuple(i for i, own in enumerate(allocation) if name in {each.id for each in own})
        for name in evaluations
    }
    return list(_events(pool, evaluations, homes, features))


def _admitted(
    pool: Sequence[PoolProgram], problem: Problem, fits: Callable[[str], bool]
) -> tuple[list[PoolProgram], list[Unusable]]:
    """Part the programs from those that a run refuses without an evaluation."""
    tree = programs.parse(problem.initial_program)
    initial = None if tree is None else programs.program_key(tree)
    admitted, refused = [], []
    for each in pool:
        tree = programs.parse(each.program)
        assert tree is not None  # or it had not been read
        names = programs.undefined_names(each.program, tree)
        if programs.program_key(tree) == initial:
            refused.append(Unusable(name=each.name, reason="the same as the initial program"))
        elif names:
            reason = f"reads a name that nothing defines: {min(names)}"
            refused.append(Unusable(name=each.name, reason=reason))
        elif not fits(each.program):
            reason = "too long for a prompt; raise model.max_model_len"
            refused.append(Unusable(name=each.name, reason=reason))
        else:
            admitted.append(each)
    return admitted, refused


def _evaluated(pool: Sequence[PoolProgram], evaluators: EvaluatorPool) -> Mapping[str, Evaluation]:
    for each in pool:
        evaluators.submit(candidate_id=each.name, program=each.program)
    found: dict[str, Evaluation] = {}
    while evaluators.in_flight:
        found.update(evaluators.completed(timeout=None))
    return {each.name: found[each.name] for each in pool}


def _events(
    pool: Sequence[PoolProgram],
    evaluations: Mapping[str, Evaluation],
    homes: Mapping[str, tuple[int, ...]],
    features: Sequence[Feature] | None,
) -> Iterator[Event]:
    for number, each in enumerate(pool):
        seed = Seed(number=number, source=each.name, program=each.program, islands=homes[each.name])
        evaluation = evaluations[each.name]
        yield seed
        cell = cell_of(each.program, evaluation, features=features)
        yield Verdict.of(seed.candidate, evaluation, cell=cell)
