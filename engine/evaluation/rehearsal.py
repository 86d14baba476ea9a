"""Whether another system's evaluator can be split from the program: tried with the initial program.

Its source tells in some cases (``engine.problem.peers``). In all others it judges the initial
program once, split. That also tells what it uses of the program's objects: later programs can give
it no others. If anything was the matter then, it does so together with the program too; if
the score is better that way, it stays so. ``engine.judge`` says what the two promise.
"""

import dataclasses
import logging

from engine.core import INITIAL, Evaluation, Judge, JudgeKind, Problem, UserError
from engine.evaluation.judge_pool import open_pool
from engine.judge.setup import Setup

DOUBTS = "doubts"
OBJECTS = "objects"
"""Artifacts of a rehearsal, as in ``engine.judge.referee``."""
_SAME = 1e-9
_log = logging.getLogger("brood")


def rehearsed(problem: Problem, *, strict: bool) -> Problem:
    """Return the problem with the judge that it is to be run with; say which.

    Args:
        problem: any; one without a Python judge is returned as it is.
        strict: whether a judge in one process with the program is an error.

    Raises:
        UserError: the judge can't be split, and ``strict`` is set.
    """
    judge = problem.judge
    if judge is None or judge.kind is JudgeKind.COMMAND:
        return problem
    setup = Setup.from_json(judge.setup)
    if judge.kind is JudgeKind.TOGETHER:
        return _together(problem, judge, setup, setup.joined_by, strict=strict)
    rehearsing = dataclasses.replace(setup, is_rehearsal=True)
    trial = dataclasses.replace(judge, setup=rehearsing.to_json())
    split = _judged(problem, trial)
    doubts = split.artifacts.get(DOUBTS) or (split.message if split.score is None else "")
    if doubts:
        joined = dataclasses.replace(judge, kind=JudgeKind.TOGETHER)
        whole = _judged(problem, joined)
        if _is_better(whole, split):
            return _together(problem, joined, setup, doubts, strict=strict)
    _log.info("the evaluator runs split from the program, each in a sandboxed process of its own")
    objects = tuple(split.artifacts.get(OBJECTS, "").split())
    known = dataclasses.replace(setup, objects=objects)
    return dataclasses.replace(problem, judge=dataclasses.replace(judge, setup=known.to_json()))


def _judged(problem: Problem, judge: Judge) -> Evaluation:
    """Return a judge's verdict on the initial program."""
    program = problem.initial_program
    trial = dataclasses.replace(problem, judge=judge)
    with open_pool(problem=trial, workers=1, only=program) as pool:
        pool.submit(candidate_id=INITIAL, program=program)
        ((_, evaluation),) = pool.completed(timeout=None)
    return evaluation


def _together(
    problem: Problem, judge: Judge, setup: Setup, reason: str, *, strict: bool
) -> Problem:
    if strict:
        raise UserError(
            f"{reason}; so it can't be split from the program, which could change its score: "
            "mend that, or give evaluation.strict=false"
        )
    _log.warning(
        "%s; so evaluator and program run together in one sandboxed process: the engine, the store "
        "and the machine are safe, the score is not, as a program can change it",
        reason,
    )
    said = dataclasses.replace(setup, joined_by=reason)
    return dataclasses.replace(problem, judge=dataclasses.replace(judge, setup=said.to_json()))


def _is_better(whole: Evaluation, split: Evaluation) -> bool:
    if whole.score is None or split.score is None:
        return whole.score is not None
    return whole.score > split.score + _SAME * max(1.0, abs(split.score))
