"""A run's beginning from a pool: read, evaluate, cluster, and say who starts where.

TurboEvolve, section 3.3: the pool's programs are evaluated as all others are, embedded, clustered
into as many clusters as there are islands, and mixed a little (``allocation``). Every program that
was evaluated is recorded with its verdict, also one that failed, or that no island took.

Does not cover how an island takes them in: ``engine.search``.
"""

import logging
from collections.abc import Callable, Mapping, Sequence

from engine.core import Candidate, Evaluation, Feature, Problem, Program
from engine.embedding import embed
from engine.evaluation import EvaluatorPool
from engine.pool.allocation import allocate
from engine.pool.reading import PoolProgram, PoolReading
from engine.search.features import cell_of
from engine.settings import RunSettings
from engine.store import Event, Seed, Verdict
from engine.syntax import read

_log = logging.getLogger("brood")


def seeds(
    settings: RunSettings,
    reading: PoolReading,
    *,
    problem: Problem,
    evaluators: EvaluatorPool,
    fits: Callable[[str], bool],
    features: Sequence[Feature] | None,
) -> list[Event]:
    """Return the events that record a pool's programs; none of an empty pool.

    What is left out is logged with the reason.

    Args:
        settings: the run's.
        reading: what the pool's sources hold.
        problem: that the programs are for.
        evaluators: nobody else uses them meanwhile.
        fits: whether a prompt has room for a program.
        features: of the islands' archives; None where there are none.
    """
    if not (reading.programs or reading.unusable):
        return []
    left_out, pool = dict(reading.unusable), []
    for each in reading.programs:
        reason = _refusal(each.program, problem, fits)
        if reason is None:
            pool.append(each)
        else:
            left_out[each.name] = reason
    evaluations, valid = _evaluated(pool, evaluators), []
    for each in pool:
        found = evaluations[each.name]
        if found.score is None:
            left_out[each.name] = " ".join(f"{found.failure}: {found.message}".split())
        else:
            valid.append(Candidate(id=each.name, program=each.program.text, score=found.score))
    for name, reason in left_out.items():
        _log.warning("pool: %s is left out: %s", name, reason)
    _log.info("pool: %d programs, %d with a score", len(pool), len(valid))
    allocation = allocate(
        valid,
        embed([each.program for each in valid]),
        islands=settings.islands.count,
        mixing=settings.pool.mixing,
        elites=settings.pool.elites,
        direction=problem.direction,
        seed=settings.seed,
    )
    taken = [{each.id for each in own} for own in allocation]
    events: list[Event] = []
    for number, each in enumerate(pool):
        islands = tuple(island for island, own in enumerate(taken) if each.name in own)
        text, evaluation = each.program.text, evaluations[each.name]
        seed = Seed(number=number, source=each.name, program=text, islands=islands)
        cell = cell_of(each.program, evaluation, features=features)
        events += [seed, Verdict(candidate=seed.candidate, evaluation=evaluation, cell=cell)]
    return events


def _refusal(program: Program, problem: Problem, fits: Callable[[str], bool]) -> str | None:
    """Return why a run refuses a program without an evaluation; None if it does not."""
    initial = read(problem.initial_program)
    if initial is not None and program.key == initial.key:
        return "the same as the initial program"
    if program.undefined:
        return f"reads a name that nothing defines: {program.undefined[0]}"
    return None if fits(program.text) else "too long for a prompt; raise model.max_model_len"


def _evaluated(pool: Sequence[PoolProgram], evaluators: EvaluatorPool) -> Mapping[str, Evaluation]:
    for each in pool:
        evaluators.submit(candidate_id=each.name, program=each.program.text)
    found: dict[str, Evaluation] = {}
    while evaluators.in_flight:
        found.update(evaluators.completed(timeout=None))
    return {each.name: found[each.name] for each in pool}
