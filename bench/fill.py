"""Question: by how much do fills delay the parsing and the evaluation of the model's children?

Method, for each problem: evaluators as a run has them, one for each core that a model leaves, and
idle evaluators on the same cores. The initial program is evaluated again and again with a pause of
`PAUSE` seconds before each, as a model's children come; the latency is from the call to the
verdict. In each round ``calls`` calls are made while the idle evaluators have nothing, and as many
while they have more mutations of the initial program than they can evaluate, another half first
each time. ``delay`` is the difference of a round's medians, ``delay_of_means`` that of its means,
which a few late verdicts change too. The program is also parsed, again with a pause before each
time: ``beside`` while the idle processes that make fills have more than they can make, and
``in_one_queue`` while the processes that parse have as many fills to make themselves.

Usage: python -m bench.fill [problems=signal,circle_packing] [rounds=6] [calls=40]
The last line printed is JSON, times in ms.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from itertools import count, cycle

from bench.figures import milliseconds, spread
from bench.options import read_options, run_as_command, whole_number
from engine.core import Problem
from engine.evaluation import EvaluatorPool, evaluator_cores
from engine.mutation import mutated
from engine.problem import chosen_problem
from engine.syntax import read
from engine.syntax.workers import SyntaxWorkers

DEFAULTS = {"problems": "signal,circle_packing", "rounds": "6", "calls": "40"}
PAUSE = 0.02
_AHEAD = 16  # mutations that wait, for each evaluator


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    rounds, calls = whole_number(options, "rounds"), whole_number(options, "calls")
    found = {}
    for name in options["problems"].split(","):
        problem = chosen_problem({"problem": name})
        found[name] = {
            **_measured(problem, rounds=rounds, calls=calls),
            "parsing": _parsing(problem, rounds=rounds, calls=calls),
        }
        sys.stdout.write(f"{name}: {found[name]}\n")
    sys.stdout.write(json.dumps({"rounds": rounds, "calls": calls, "problems": found}) + "\n")


def _measured(problem: Problem, *, rounds: int, calls: int) -> dict[str, object]:
    workers = max(1, len(os.sched_getaffinity(0)) // 2)
    cores = evaluator_cores(workers)
    first = problem.initial_program
    programs = cycle([mutated(first, seed=i, temperature=1.0) for i in range(200)])
    seconds: dict[bool, list[float]] = {False: [], True: []}  # by whether there are fills
    delays, of_means, fills = [], [], count()
    with (
        EvaluatorPool(problem=problem, workers=workers, cores=cores) as evaluators,
        EvaluatorPool(problem=problem, workers=workers, cores=cores, idle=True) as idle,
    ):
        evaluators.check_walls(strict=False)
        idle.check_walls(strict=False)
        for turn in range(rounds):
            took: dict[bool, list[float]] = {False: [], True: []}
            for filled in (True, False) if turn % 2 else (False, True):
                for _ in range(calls):
                    while filled and idle.in_flight < _AHEAD * workers:
                        idle.submit(candidate_id=str(next(fills)), program=next(programs))
                    took[filled].append(_latency(evaluators, problem))
                    idle.completed(timeout=0)
                while idle.in_flight:
                    idle.completed(timeout=1.0)
                seconds[filled] += took[filled]
            delays.append(1e3 * (statistics.median(took[True]) - statistics.median(took[False])))
            of_means.append(1e3 * (statistics.fmean(took[True]) - statistics.fmean(took[False])))
    return {
        "alone_ms": milliseconds(seconds[False]),
        "beside_fills_ms": milliseconds(seconds[True]),
        "delay_ms": spread(delays),
        "delay_of_means_ms": spread(of_means),
        "fills": next(fills),
    }


def _parsing(problem: Problem, *, rounds: int, calls: int) -> dict[str, object]:
    every = os.sched_getaffinity(0)
    text = problem.initial_program
    arms: dict[str, list[float]] = {"alone": [], "beside": [], "in_one_queue": []}
    medians: dict[str, list[float]] = {arm: [] for arm in arms}
    seeds = count()
    with (
        SyntaxWorkers(count=1, cores=every) as parsers,
        SyntaxWorkers(count=1, cores=every, idle=True) as makers,
    ):
        makes: Mapping[str, SyntaxWorkers | None]
        makes = {"alone": None, "beside": makers, "in_one_queue": parsers}
        parsers.submit(mutated, text, seed=0, temperature=1.0).result()  # it is warm
        for turn in range(rounds):
            for arm in [*arms][turn % 3 :] + [*arms][: turn % 3]:
                waiting: deque[Future[str]] = deque()
                took = []
                for _ in range(calls):
                    while waiting and waiting[0].done():
                        waiting.popleft()
                    while (maker := makes[arm]) is not None and len(waiting) < _AHEAD:
                        waiting.append(
                            maker.submit(mutated, text, seed=next(seeds), temperature=1.0)
                        )
                    time.sleep(PAUSE)
                    began = time.perf_counter()
                    parsers.submit(read, text).result()
                    took.append(time.perf_counter() - began)
                for each in waiting:
                    each.result()
                arms[arm] += took
                medians[arm].append(1e3 * statistics.median(took))
    return {
        **{f"{arm}_ms": milliseconds(seconds) for arm, seconds in arms.items()},
        **{
            f"delay_{arm}_ms": spread([b - a for a, b in zip(medians["alone"], each, strict=True)])
            for arm, each in medians.items()
            if arm != "alone"
        },
    }


def _latency(pool: EvaluatorPool, problem: Problem) -> float:
    time.sleep(PAUSE)
    began = time.perf_counter()
    pool.submit(candidate_id="child", program=problem.initial_program)
    pool.completed(timeout=None)
    return time.perf_counter() - began


if __name__ == "__main__":
    run_as_command(main)
