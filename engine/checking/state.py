"""Is a score a function of the outputs alone, whoever was scored before, and in which thread?"""

import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from engine.checking.finding import Finding, good, wrong
from engine.checking.outputs import Scored, constant, filled, scored
from engine.checking.trials import place_of_score
from engine.core import Outputs, Problem

_THREADS = 4
_SLOW_SECONDS = 5.0


def check_state(problem: Problem, outputs: Sequence[Outputs]) -> Iterator[Finding]:
    """Score the same outputs again, after others, after other random numbers, and side by side."""
    others = filled(problem, outputs, constant(1)) or tuple(outputs)
    began = time.perf_counter()
    first = scored(problem, outputs)
    seconds = time.perf_counter() - began
    again = {"again": scored(problem, outputs)}
    scored(problem, others)
    again["after other outputs"] = scored(problem, outputs)
    random.seed(1)
    np.random.seed(1)
    again["after other random numbers"] = scored(problem, outputs)
    if seconds < _SLOW_SECONDS:
        with ThreadPoolExecutor(_THREADS) as threads:
            given = [outputs, others] * _THREADS
            found = list(threads.map(lambda each: scored(problem, each), given))
        again["in several threads at once"] = _other_than(first, found[::2])
    for when, verdict in again.items():
        if verdict != first:
            yield wrong(
                "state",
                f"the same outputs score {_said(first)}, and {when} {_said(verdict)}",
                where=place_of_score(problem),
                remedy="let score() depend on its argument alone: no globals, seeded generators",
            )
            return
    yield good("state", f"the same outputs score alike: {', '.join(again)}")


def _other_than(first: Scored, found: Sequence[Scored]) -> Scored:
    return next((each for each in found if each != first), first)


def _said(verdict: Scored) -> str:
    return repr(verdict.score) if verdict.score is not None else verdict.fault or "nothing"
