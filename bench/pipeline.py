"""Question: what do overlap, islands in one batch and speculation give, and does the search pay?

Method: real runs of the embedded model on ``problem``, for each seed one of each mode, interleaved
seed by seed, each of the same number of evaluated candidates and from an empty prefix cache. The
model has one core and the evaluator another. Modes:

- ``standard``: one call after the other, in phases (``pipeline.overlap=false``);
- ``overlapped``: the default loop without guesses, one island;
- ``speculative``: the same with ``pipeline.speculate=true``;
- ``islands``: four islands in one batch, without guesses;
- ``islands-speculative``: the same with guesses.

A number behind a speculative mode, as in ``speculative:1``, says how many calls ahead its guesses
may go.

A candidate costs, besides its own run, a fixed number of steps of a kernel on the evaluator's
thread: none (``cheap``), as many as make the evaluator's time per candidate that of the model in
``standard`` mode (``balanced``; calibrated at the start), or three times as many (``bound``).

Reported: candidates an hour; the model's and the evaluator's busy seconds; ``wall_over_larger``,
the wall seconds over the larger of the two (1 is perfect); guesses, and the share that came true;
tokens generated for nothing.
Medians over the seeds with their range; ``rate_over_standard`` is paired by seed. The best scores
at equal candidates are compared with ``standard``'s, paired by seed: mean difference, 95 % t
interval, Wilcoxon's signed-rank test.

Finished runs are kept in ``out``, one JSON line each, and not run again with the same problem,
model and candidates.

Usage: python -m bench.pipeline [problem=signal] [cases=cheap,balanced,bound] [candidates=100]
       [modes=standard,overlapped,speculative,islands,...] [seeds=0,1,2] [model=smollm2]
       [out=FILE]
The last line printed is JSON.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from numba import njit

from bench.figures import paired, spread
from bench.finished import add_finished, read_finished, shared_options
from bench.options import model_arguments, read_options, run_as_command, whole_number
from bench.runs import TemporaryRun, temporary_run
from engine import config
from engine.core import Direction, Problem, UserError
from engine.evaluation import EvaluatorPool, evaluator_cores, model_cores
from engine.inference import LanguageModel, find_weights, prepare
from engine.problem import chosen_problem
from engine.settings import RunSettings
from engine.timeline import Timeline

DEFAULTS = {
    "model": "smollm2",
    "problem": "signal",
    "cases": "cheap,balanced,bound",
    "modes": "standard,overlapped,speculative,islands,islands-speculative",
    "seeds": "0,1,2",
    "candidates": "100",
    "out": "runs/bench-pipeline.jsonl",
}
_APART = ("cases", "modes", "seeds", "out")  # options in which the runs of one command differ
COSTS = {"cheap": 0.0, "balanced": 1.0, "bound": 3.0}
"""Evaluator seconds over the model's, by case."""
ISLANDS = 4


def settings_of(mode: str, base: RunSettings, *, seed: int) -> RunSettings:
    """Return the settings of a mode.

    Raises:
        UserError: there is no such mode.
    """
    kind, _, ahead = mode.removeprefix("islands-").partition(":")
    known = kind in ("standard", "overlapped", "islands", "speculative")
    if not known or (ahead and not (kind == "speculative" and ahead.isdecimal())):
        raise UserError(f"modes={mode} is none of {DEFAULTS['modes']}")
    return replace(
        base,
        seed=seed,
        islands=replace(base.islands, count=ISLANDS if mode.startswith("islands") else 1),
        pipeline=replace(
            base.pipeline,
            overlap=kind != "standard",
            speculate=kind == "speculative",
            ahead=int(ahead or base.pipeline.ahead),
        ),
    )


@njit(nogil=True)
def _turn(steps: int) -> int:
    """Return something that takes ``steps`` steps to compute."""
    state = 1
    for _ in range(steps):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
    return state


def steps_per_second() -> float:
    """Return how many of the kernel's steps a second takes, on this machine now."""
    steps = 20_000_000
    _turn(1)
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        _turn(steps)
        seconds.append(time.perf_counter() - began)
    return steps / statistics.median(seconds)


class SlowPool(EvaluatorPool):
    """Evaluators that take some steps longer for each candidate, valid or not."""

    def __init__(self, *, problem: Problem, cores: Sequence[int], steps: int) -> None:
        """Start an evaluator on each of ``cores``."""
        super().__init__(problem=problem, workers=len(cores), cores=cores)
        self._steps = steps

    def watch(self, timeline: Timeline) -> None:
        """See `EvaluatorPool.watch`; the steps are taken where a worker is recorded as busy."""
        super().watch(timeline)
        for lane in self._lanes:
            lane.record = functools.partial(_record_slowly, lane.record, self._steps)


def _record_slowly(record: Callable[[float], None], steps: int, seconds: float) -> None:
    began = time.perf_counter()
    _turn(steps)
    record(seconds + time.perf_counter() - began)


def one_run(
    *,
    settings: RunSettings,
    problem: Problem,
    model: LanguageModel,
    cores: Sequence[int],
    steps: int,
) -> tuple[dict[str, Any], TemporaryRun]:
    """Return the figures of one run, with an evaluator on each of ``cores``."""
    model.forget()
    with SlowPool(problem=problem, cores=cores, steps=steps) as pool:
        pool.check_walls(strict=False)  # waits until it is warm
        began = time.monotonic()
        run = temporary_run(
            settings=settings, problem=problem, model=model, pool=pool, stopped=lambda _: False
        )
        wall = time.monotonic() - began
    history, clock = run.history, run.clock
    assert history.best is not None  # the initial program's, at least
    given_up = history.given_up
    model_seconds = history.llm_seconds + sum(each.llm_seconds for each in given_up)
    evaluator_seconds = clock["evaluators"][0]["busy"] * clock["seconds"]
    guesses = history.guessed + len(given_up)
    figures = {
        "candidates": history.evaluated,
        "valid": history.valid,
        "children": len(history.children),
        "wall_seconds": round(wall, 2),
        "candidates_per_hour": round(3600 * history.evaluated / wall),
        "model_seconds": round(model_seconds, 2),
        "evaluator_seconds": round(evaluator_seconds, 2),
        "wall_over_larger": round(wall / max(model_seconds, evaluator_seconds), 3),
        "guesses": guesses,
        "hits": history.guessed,
        "wasted_tokens": sum(each.generated_tokens for each in given_up),
        "generated_tokens": history.generated_tokens,
        "best_score": history.best.score,
    }
    return figures, run


def seconds_per_candidate(
    *, base: RunSettings, problem: Problem, model: LanguageModel, cores: Sequence[int]
) -> float:
    """Return the model's seconds for each evaluated candidate, in the standard loop."""
    settings = settings_of("standard", base, seed=1000)
    settings = replace(settings, budget=replace(settings.budget, candidates=60))
    for _ in range(2):  # the first one warms what is lazy
        _, run = one_run(settings=settings, problem=problem, model=model, cores=cores, steps=0)
    return run.history.llm_seconds / run.history.evaluated


def compared(runs: Mapping[str, Mapping[int, dict[str, Any]]], direction: Direction) -> Any:
    """Return each mode's medians and ranges, and its paired comparison with ``standard``."""
    sign = 1 if direction is Direction.MAXIMISE else -1
    result: dict[str, Any] = {}
    for mode, by_seed in runs.items():
        each = list(by_seed.values())
        figures: dict[str, Any] = {
            key: spread([run[key] for run in each])
            for key in ("candidates_per_hour", "wall_over_larger", "model_seconds")
        }
        figures["evaluator_seconds"] = spread([run["evaluator_seconds"] for run in each])
        figures["best_score"] = spread([run["best_score"] for run in each], digits=6)
        guesses = sum(run["guesses"] for run in each)
        if guesses:
            generated = sum(run["generated_tokens"] + run["wasted_tokens"] for run in each)
            figures["guesses"] = guesses
            figures["hit_share"] = round(sum(run["hits"] for run in each) / guesses, 3)
            figures["wasted_share_of_tokens"] = round(
                sum(run["wasted_tokens"] for run in each) / generated, 3
            )
        standard = runs.get("standard", {})
        seeds = sorted(set(by_seed) & set(standard))
        if mode != "standard" and seeds:
            figures["rate_over_standard"] = spread(
                [
                    by_seed[s]["candidates_per_hour"] / standard[s]["candidates_per_hour"]
                    for s in seeds
                ]
            )
        if mode != "standard" and len(seeds) > 1:
            figures["better_than_standard"] = paired(
                [sign * (by_seed[s]["best_score"] - standard[s]["best_score"]) for s in seeds]
            )
        result[mode] = figures
    return result


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    seeds = [int(seed) for seed in options["seeds"].split(",")]
    modes, cases = options["modes"].split(","), options["cases"].split(",")
    unknown = sorted(set(cases) - set(COSTS))
    if unknown:
        raise UserError(f"cases={unknown[0]} is none of {', '.join(COSTS)}")
    candidates = whole_number(options, "candidates")
    base = config.resolve(
        [*model_arguments(options), f"budget.candidates={candidates}", "budget.seconds=null"]
    )
    cores = evaluator_cores(1)  # before this process gives them away
    os.sched_setaffinity(0, model_cores(cores))
    prepare(threads=1, kv_cache_gb=base.model.kv_cache_gb)
    problem = chosen_problem({"problem": options["problem"]})
    out = Path(options["out"])
    out.parent.mkdir(parents=True, exist_ok=True)
    shared = shared_options(options, apart=_APART)
    finished = {(run["case"], run["seed"], run["mode"]): run for run in read_finished(out, shared)}
    model = LanguageModel(settings=base.model, folder=find_weights(base.model), seed=0)
    if finished:  # goes on as it began
        balanced = next(iter(finished.values()))["balanced"]
    else:
        balanced = seconds_per_candidate(base=base, problem=problem, model=model, cores=cores)
    speed = steps_per_second()
    sys.stdout.write(f"model: {balanced:.3f} s a candidate; kernel: {speed:.3g} steps/s\n")
    result: dict[str, Any] = {}
    for case in cases:
        runs: dict[str, dict[int, dict[str, Any]]] = {mode: {} for mode in modes}
        for seed in seeds:
            for mode in modes:
                if (case, seed, mode) not in finished:
                    figures, _ = one_run(
                        settings=settings_of(mode, base, seed=seed),
                        problem=problem,
                        model=model,
                        cores=cores,
                        steps=int(COSTS[case] * balanced * speed),
                    )
                    own = {"case": case, "seed": seed, "mode": mode, "balanced": balanced}
                    finished[case, seed, mode] = add_finished(out, {**own, **figures}, shared)
                runs[mode][seed] = finished[case, seed, mode]
                sys.stdout.write(f"{runs[mode][seed]}\n")
                sys.stdout.flush()
        result[case] = compared(runs, problem.direction)
    model.close()
    sys.stdout.write(json.dumps({"options": options, "cases": result}) + "\n")


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    run_as_command(main)
