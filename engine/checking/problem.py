"""All checks of one problem, in their order."""

import itertools
import time
from collections.abc import Iterator

from engine.checking.cheats import check_cheats
from engine.checking.finding import Finding, doubtful, good
from engine.checking.judges import check_judge
from engine.checking.outputs import check_claims, check_constants
from engine.checking.runs import check_memory, check_noise, check_speed
from engine.checking.stages import check_stages
from engine.checking.state import check_state
from engine.checking.texts import (
    check_features,
    check_isolation,
    check_known,
    check_modules,
    check_statement,
)
from engine.checking.trials import Baseline, Trial, Trials
from engine.core import Problem
from engine.core.bundle import bundle_of, files_of, is_bundle
from engine.problem import check_initial_verdict
from engine.problem.initial import entry_of

RUNS = 5
"""How often the initial program is run, to see the noise."""
_FEWEST_RUNS = 2
_SECONDS = 60.0
"""After which it is not run once more."""


def check_problem(problem: Problem, *, runs: int = RUNS) -> Iterator[Finding]:
    """Check a problem that was loaded, and yield each finding as it is made.

    Args:
        problem: to check.
        runs: how often to run the initial program, at most, if that takes long.

    Raises:
        UserError: its initial program has no score, or one that its target is no better than, so
            that nothing else can be checked.
    """
    with Trials(problem) as trials:
        wall = trials.missing_wall()
        first = trials.run(problem.initial_program)
        score = check_initial_verdict(problem, first.evaluation)
        yield good("initial", f"the initial program scores {score!r} ({problem.direction})")
        repeated = [first, *_repeats(problem, trials, runs)]
        scores = [check_initial_verdict(problem, each.evaluation) for each in repeated]
        baseline = Baseline(direction=problem.direction, scores=tuple(scores))
        yield check_noise(problem, repeated, baseline)
        yield check_speed(problem, repeated, first_seconds=trials.first_seconds)
        yield check_memory(problem, repeated, idle_bytes=_idle_bytes(problem, trials))
        yield _walls(wall)
        yield from check_known(problem, baseline)
        yield from check_features(problem, first)
        yield from _own_cases(problem, first, baseline)
        yield from check_cheats(problem, trials, baseline)
        yield from check_stages(problem, trials, baseline)


def _repeats(problem: Problem, trials: Trials, runs: int) -> Iterator[Trial]:
    """Run the initial program again, as often as is asked for and there is time."""
    began = time.monotonic()
    for number in itertools.count(2):
        if number > runs or (number > _FEWEST_RUNS and time.monotonic() - began > _SECONDS):
            return
        yield trials.run(problem.initial_program)


def _idle_bytes(problem: Problem, trials: Trials) -> int:
    """Return what the process of a program holds that does nothing."""
    if problem.judge is not None:
        return 0
    entry, program = entry_of(problem), problem.initial_program
    idle = f"def {entry.function}(*given, **named): ...\n"
    if is_bundle(program):
        idle = bundle_of({**files_of(program), entry.file: idle})
    return trials.run(idle).evaluation.peak_bytes


def _walls(missing: str | None) -> Finding:
    if missing is None:
        return good("walls", "all of them stand round a program here")
    return doubtful("walls", missing, where="", remedy="see docs/evaluation.md")


def _own_cases(problem: Problem, first: Trial, baseline: Baseline) -> Iterator[Finding]:
    """Check what can be seen where the engine itself calls programs and scores their arrays."""
    if problem.judge is not None:
        yield from check_judge(problem.judge)
        yield good(
            "outputs",
            "constants, claims, state and the statement are not checked: the problem has an "
            f"evaluator of its own ({problem.judge.kind})",
        )
        return
    yield from check_statement(problem)
    yield from check_modules(problem)
    yield from check_isolation(problem)
    yield from check_constants(problem, first.outputs, baseline)
    yield from check_claims(problem, first.outputs, baseline)
    yield from check_state(problem, first.outputs)
