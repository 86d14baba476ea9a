"""Question: by how much do fills on the cores of a model that computes on the CPU slow it down?

Method: the model on ``cores`` of this machine, and idle evaluators on the same cores, as a run with
``fill.model_cores`` has them. The model decodes `K` children of a problem's initial program,
`TOKENS` tokens each; the prompt is in the prefix cache. In each round, another one first each time,
``calls`` calls are made while the idle evaluators have nothing, and as many while they have more
mutations of that program than they can evaluate. ``slowdown`` is the ratio of a round's medians, of
which the rounds' median, lowest and highest are given.

Usage: python -m bench.fill_model [problems=signal,circle_packing] [rounds=8] [calls=10] [cores=1]
       [model=smollm2] [out=FILE]
The last line printed is JSON, times in ms; ``out`` gets it too.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from itertools import count, cycle
from pathlib import Path

from bench.figures import milliseconds, spread
from bench.options import model_arguments, read_options, run_as_command, whole_number
from engine import config
from engine.core import Problem
from engine.evaluation import EvaluatorPool
from engine.inference import LanguageModel, Sampling, find_weights, prepare
from engine.mutation import mutated
from engine.problem import chosen_problem

DEFAULTS = {"problems": "signal,circle_packing", "rounds": "8", "calls": "10", "cores": "1"}
DEFAULTS |= {"model": "smollm2", "out": ""}
K, TOKENS = 8, 16
_AHEAD = 16  # mutations that wait, for each evaluator


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    rounds, calls = whole_number(options, "rounds"), whole_number(options, "calls")
    cores = sorted(os.sched_getaffinity(0))[: whole_number(options, "cores")]
    settings = config.resolve([*model_arguments(options), "model.top_p=null"]).model
    weights = find_weights(settings)
    os.sched_setaffinity(0, cores)
    prepare(threads=len(cores), kv_cache_gb=settings.kv_cache_gb)
    model = LanguageModel(settings=settings, folder=weights, seed=0)
    found = {}
    for name in options["problems"].split(","):
        problem = chosen_problem({"problem": name})
        found[name] = _measured(model, problem, cores=cores, rounds=rounds, calls=calls)
        sys.stdout.write(f"{name}: {found[name]['slowdown']}\n")
    model.close()
    line = json.dumps({"rounds": rounds, "calls": calls, "cores": len(cores), "problems": found})
    if options["out"]:
        Path(options["out"]).write_text(f"{line}\n", encoding="utf-8")
    sys.stdout.write(f"{line}\n")


def _measured(
    model: LanguageModel, problem: Problem, *, cores: Sequence[int], rounds: int, calls: int
) -> dict[str, object]:
    programs = cycle(mutated(problem.initial_program, seed=i, temperature=1.0) for i in range(200))
    seconds: dict[bool, list[float]] = {False: [], True: []}
    ratios, fills = [], count()
    with EvaluatorPool(problem=problem, workers=len(cores), cores=cores, idle=True) as idle:
        idle.check_walls(strict=False)
        for each in range(rounds):
            took: dict[bool, list[float]] = {False: [], True: []}
            for filled in (False, True) if each % 2 else (True, False):
                for call in range(calls):
                    while filled and idle.in_flight < _AHEAD * len(cores):
                        idle.submit(candidate_id=str(next(fills)), program=next(programs))
                    took[filled].append(_call(model, problem, seed=K * call))
                    idle.completed(timeout=0)
                while idle.in_flight:
                    idle.completed(timeout=1.0)
                seconds[filled] += took[filled]
            ratios.append(statistics.median(took[True]) / statistics.median(took[False]))
    return {
        "alone_ms": milliseconds(seconds[False]),
        "beside_fills_ms": milliseconds(seconds[True]),
        "slowdown": spread(ratios),
        "fills": next(fills),
    }


def _call(model: LanguageModel, problem: Problem, *, seed: int) -> float:
    """Return the seconds of a call whose children all have the same length."""
    prompt = model.encode(problem.initial_program)
    ends = tuple(model.encode("<|im_end|>") + model.encode("<|endoftext|>"))
    sampling = [
        Sampling(temperature=0.8, seed=seed + i, stop=(), max_tokens=TOKENS, banned=ends)
        for i in range(K)
    ]
    began = time.perf_counter()
    children = list(model.fanout(token_ids=prompt, sampling=sampling))
    assert all(each.generated_tokens == TOKENS for each in children)
    return time.perf_counter() - began


if __name__ == "__main__":
    run_as_command(main)
