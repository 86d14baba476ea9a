"""The initial program, run several times: noise, speed, memory."""

from collections.abc import Sequence
from statistics import median

from engine.checking.finding import Finding, doubtful, good
from engine.checking.trials import Baseline, Trial, place_of_score, same
from engine.core import Problem
from engine.problem.initial import entry_of
from engine.problem.places import place_of_key

_NEAR = 0.5
"""Share of a limit beyond which a child that needs a little more fails."""


def check_noise(problem: Problem, trials: Sequence[Trial], baseline: Baseline) -> Finding:
    """Say how far the scores of one program lie apart, and why."""
    if len(set(baseline.scores)) == 1:
        return good("noise", f"none: {len(trials)} runs gave the same score")
    relative = baseline.spread / max(abs(baseline.best), 1e-300)
    said = (
        f"{len(trials)} runs of the initial program spread over {baseline.spread:.3g} "
        f"({100 * relative:.2g} % of its score)"
    )
    answers = [each.outputs for each in trials]
    remedy = "smaller gains mean nothing; score more cases, or longer ones if time counts"
    if problem.judge is not None:
        return doubtful("noise", said, where=place_of_score(problem), remedy=remedy)
    if all(same(answers[0], each) for each in answers[1:]):
        said = f"{said}, though its answers are the same"
        return doubtful("noise", said, where=place_of_score(problem), remedy=remedy)
    return doubtful(
        "noise",
        f"{said}; its answers differ",
        where=entry_of(problem).place,
        remedy="seed what it draws; smaller gains mean nothing",
    )


def check_speed(problem: Problem, trials: Sequence[Trial], *, first_seconds: float) -> Finding:
    """Say how long an evaluation takes, and how many an hour brings."""
    program = median(each.evaluation.seconds for each in trials)
    wall = median(each.wall for each in trials)
    said = (
        f"the initial program takes {program:.3g} s, {wall:.3g} s with walls and scoring; "
        f"{3600 / wall:,.0f} evaluations an hour on one core, "
        f"after {max(0.0, first_seconds - wall):.1f} s of start"
    )
    if program > _NEAR * problem.limits.seconds:
        return doubtful(
            "speed",
            f"{said}; the limit is {problem.limits.seconds:g} s",
            where=place_of_key(problem.folder, "limits"),
            remedy="raise limits.seconds, or many children will be cut off",
        )
    return good("speed", said)


def check_memory(problem: Problem, trials: Sequence[Trial], *, idle_bytes: int) -> Finding:
    """Say how much of its memory the initial program takes.

    Args:
        problem: whose it is.
        trials: its runs.
        idle_bytes: what a process holds that does nothing; the limit does not count that.
    """
    peak, limit = max(each.evaluation.peak_bytes for each in trials), problem.limits.memory_bytes
    own = max(0, peak - idle_bytes)
    said = f"the initial program takes {own / 2**20:.0f} MiB of {limit / 2**20:.0f} MiB"
    if own > _NEAR * limit:
        return doubtful(
            "memory",
            said,
            where=place_of_key(problem.folder, "limits"),
            remedy="raise limits.memory_mb, or many children will fail",
        )
    return good("memory", said)
