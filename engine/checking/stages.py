"""Do a problem's cheap stages rank programs as its full evaluation does?"""

import time
from collections.abc import Iterator

from scipy.stats import spearmanr

from engine.checking.finding import Finding, doubtful, good
from engine.checking.trials import Baseline, Trials
from engine.core import Problem
from engine.mutation import mutated
from engine.problem.places import place_of_function

_PROGRAMS = 24
_FEWEST = 5
_SECONDS = 120.0
_LOWEST = 0.5
"""Rank correlation below which a stage throws too many good programs away."""


def check_stages(problem: Problem, trials: Trials, baseline: Baseline) -> Iterator[Finding]:
    """Compare the stages' scores of some mutations of the initial program."""
    cheap = range(len(problem.stages) - 1)
    if not cheap:
        return
    full: list[float] = []
    proxies: dict[int, list[float]] = {stage: [] for stage in cheap}
    for program in _programs(problem):
        score = trials.run(program).evaluation.score
        found = [trials.run(program, stage=stage).evaluation.score for stage in cheap]
        if score is None or any(each is None for each in found):
            continue
        full.append(score)
        for stage, each in zip(cheap, found, strict=True):
            proxies[stage].append(float(each or 0.0))
    for stage in cheap:
        name = problem.stages[stage].name
        if len(set(filter(baseline.differs, full))) < _FEWEST or len(set(proxies[stage])) < 2:
            yield good("stages", f"stage {name} can't be judged: most mutations score alike")
        else:
            yield _compared(problem, name, proxies[stage], full)


def _compared(problem: Problem, stage: str, proxy: list[float], full: list[float]) -> Finding:
    where = place_of_function(problem.folder / "evaluator.py", "screens")
    correlation = float(spearmanr(proxy, full).statistic)
    said = f"stage {stage} ranks {len(full)} mutations with a correlation of {correlation:.2f}"
    if correlation < _LOWEST:
        return doubtful(
            "stages", said, where=where, remedy="let it see more of the problem, or take it out"
        )
    return good("stages", said)


def _programs(problem: Problem) -> Iterator[str]:
    """Yield mutations of the initial program, each another one, for as long as there is time."""
    began, seen = time.monotonic(), {problem.initial_program}
    for seed in range(_PROGRAMS):
        program = mutated(problem.initial_program, seed=seed, temperature=1.0)
        if program not in seen and time.monotonic() - began < _SECONDS:
            seen.add(program)
            yield program
