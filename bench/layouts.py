"""Question: is the search worse for a layout that suits the prefix cache?

Method: real runs of the embedded model, one for each seed and layout, each of the same number of
evaluated candidates. ``none`` shows no other programs, ``aligned`` is ``none`` with prompts filled
up to a block of the prefix cache. Paired by seed: the difference of each layout's best score from
``classic``'s, its mean with a 95 % t interval, and Wilcoxon's signed-rank test (exact, two-sided).
Seconds are reported, not compared: equal candidates is the measure.

``classic`` shows kept + growth / 2 tokens of the best other programs, the others as in
``bench.cache``. Finished runs are kept in ``out``, one JSON line each, and not run again with the
same problem, model, candidates, kept and growth, so the benchmark may be cut short and started
again.

Usage: python -m bench.layouts [problem=signal]
       [layouts=classic,stable,transcript,none,aligned] [seeds=0,1,2,3,4,5,6,7,8,9]
       [candidates=200] [kept=1024] [growth=512] [model=smollm2] [out=FILE]
The last line printed is JSON.
"""

from __future__ import annotations

import json
import logging
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.cache import configured
from bench.figures import paired
from bench.finished import add_finished, read_finished, shared_options
from bench.options import model_arguments, read_options, run_as_command, whole_number
from bench.runs import temporary_run
from engine import config
from engine.core import Direction, Problem
from engine.evaluation import EvaluatorPool, open_pool
from engine.inference import LanguageModel, find_weights, prepare
from engine.problem import chosen_problem
from engine.settings import RunSettings

DEFAULTS = {
    "model": "smollm2",
    "problem": "signal",
    "layouts": "classic,stable,transcript,none,aligned",
    "seeds": "0,1,2,3,4,5,6,7,8,9",
    "candidates": "200",
    "kept": "1024",
    "growth": "512",
    "out": "runs/bench-layouts.jsonl",
}
_APART = ("layouts", "seeds", "out")  # options in which the runs of one command differ


def settings_of(layout: str, base: RunSettings, options: dict[str, str]) -> RunSettings:
    """Return the settings of one of the layouts compared."""
    alone = layout in ("none", "aligned")
    settings = configured(
        base,
        layout="stable" if alone else layout,
        k=base.search.k,
        kept=0 if alone else whole_number(options, "kept"),
        growth=whole_number(options, "growth"),
    )
    return replace(
        settings,
        prompts=replace(settings.prompts, align=layout == "aligned"),
    )


def one_run(
    *, settings: RunSettings, problem: Problem, model: LanguageModel, pool: EvaluatorPool
) -> dict[str, Any]:
    """Return the figures of one run that starts with an empty prefix cache."""
    model.forget()
    began = time.monotonic()
    history = temporary_run(
        settings=settings, problem=problem, model=model, pool=pool, stopped=lambda _: False
    ).history
    assert history.best is not None  # the initial program's, at least
    return {
        "best_score": history.best.score,
        "candidates": history.evaluated,
        "children": len(history.children),
        "valid": history.valid,
        "hit_rate": round(history.hit_rate, 4),
        "computed_per_child": round(sum(history.missed.values()) / len(history.children), 2),
        "seconds": round(time.monotonic() - began, 1),
    }


def compared(runs: dict[str, dict[int, dict[str, Any]]], direction: Direction) -> dict[str, Any]:
    """Return the medians of each layout, and each one's paired differences from ``classic``."""
    result: dict[str, Any] = {}
    sign = 1 if direction is Direction.MAXIMISE else -1
    for layout, by_seed in runs.items():
        scores = [by_seed[seed]["best_score"] for seed in sorted(by_seed)]
        figures: dict[str, Any] = {
            "median_best": statistics.median(scores),
            "low": min(scores),
            "high": max(scores),
            "runs": len(scores),
            "hit_rate": statistics.median(run["hit_rate"] for run in by_seed.values()),
            "computed_per_child": statistics.median(
                run["computed_per_child"] for run in by_seed.values()
            ),
            "valid_share": sum(run["valid"] for run in by_seed.values())
            / sum(run["candidates"] for run in by_seed.values()),
            "seconds": statistics.median(run["seconds"] for run in by_seed.values()),
        }
        seeds = sorted(set(by_seed) & set(runs.get("classic", {})))
        if layout != "classic" and len(seeds) > 1:
            figures["better_than_classic"] = paired(
                [
                    sign * (by_seed[seed]["best_score"] - runs["classic"][seed]["best_score"])
                    for seed in seeds
                ]
            )
        result[layout] = figures
    return result


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    seeds = [int(seed) for seed in options["seeds"].split(",")]
    candidates = whole_number(options, "candidates")
    base = config.resolve(
        [
            *model_arguments(options),
            *(f"budget.candidates={candidates}", "budget.seconds=null"),
            *("islands.count=1", "model.max_model_len=8192"),
        ]
    )
    prepare(threads=base.model.threads, kv_cache_gb=base.model.kv_cache_gb)
    problem = chosen_problem({"problem": options["problem"]})
    out = Path(options["out"])
    out.parent.mkdir(parents=True, exist_ok=True)
    shared = shared_options(options, apart=_APART)
    finished = {(each["seed"], each["layout"]): each for each in read_finished(out, shared)}
    runs: dict[str, dict[int, dict[str, Any]]] = {
        layout: {} for layout in options["layouts"].split(",")
    }
    with open_pool(problem=problem, workers=base.evaluation.workers) as pool:
        model = LanguageModel(settings=base.model, folder=find_weights(base.model), seed=0)
        for seed in seeds:
            for layout, by_seed in runs.items():
                if (seed, layout) not in finished:
                    settings = settings_of(layout, replace(base, seed=seed), options)
                    run = one_run(settings=settings, problem=problem, model=model, pool=pool)
                    own = {"seed": seed, "layout": layout}
                    finished[seed, layout] = add_finished(out, {**own, **run}, shared)
                by_seed[seed] = finished[seed, layout]
                sys.stdout.write(f"{by_seed[seed]}\n")
                sys.stdout.flush()
        model.close()
    result = compared(runs, problem.direction)
    best = {
        layout: {seed: run["best_score"] for seed, run in by_seed.items()}
        for layout, by_seed in runs.items()
    }
    sys.stdout.write(json.dumps({"options": options, "layouts": result, "best": best}) + "\n")


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    run_as_command(main)
