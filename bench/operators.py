"""Question: which operators suit a model? What share of their children runs, and what improves?

Method: for each operator alone, and for each seed, a run of the real loop over a fresh population
(model, evaluator and search as in ``engine.run``; nothing is written to disk) for the same wall
time. All runs share one loaded model and are interleaved seed by seed, so a change of the
machine's speed meets all operators alike. Shares are over all seeds:

- ``evaluated``: of the children, those that parse, are new, and read no undefined name;
- ``valid``: of the evaluated ones, those with a score;
- ``improved``: of the children, those that score better than their parent.

Usage: python -m bench.operators [operators=infill,rewrite,diff] [seconds=120] [seeds=0,1,2]
       [model=smollm2] [KEY=VALUE of engine.run ...]
The last line printed is JSON.
"""

from __future__ import annotations

import json
import logging
import statistics
import time
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bench.options import (
    model_arguments,
    number,
    read_options,
    run_as_command,
    whole_numbers,
)
from bench.runs import temporary_run
from engine import config
from engine.evaluation import open_pool
from engine.inference import LanguageModel, find_weights, prepare
from engine.problem import load_problem
from engine.settings import RunSettings, settings_of
from engine.store import RunHistory

_DEFAULTS = {
    "operators": "infill,rewrite,diff",
    "seconds": "120",
    "seeds": "0,1,2",
    "model": "smollm2",
}


def figures(histories: list[RunHistory]) -> dict[str, Any]:
    """Return the shares over all runs, and the best score of each."""
    children = max(1, sum(len(history.children) for history in histories))
    evaluated = sum(history.evaluated for history in histories)
    valid = sum(history.valid for history in histories)
    refused: Counter[str] = Counter()
    for history in histories:
        refused.update({reason.value: count for reason, count in history.refusals.items()})
    seconds = sum(history.wall_seconds for history in histories)
    bests = [history.best.score for history in histories if history.best]
    return {
        "children": children,
        "children_per_second": children / seconds,
        "evaluated": evaluated / children,
        "valid": valid / evaluated if evaluated else None,
        "improved": sum(map(improved, histories)) / children,
        "refused": {reason: count / children for reason, count in refused.most_common()},
        "hit_rate": sum(h.cached_prompt_tokens for h in histories)
        / max(1, sum(h.prompt_tokens for h in histories)),
        "best_scores": bests,
        "median_best_score": statistics.median(bests),
    }


def improved(history: RunHistory) -> int:
    """Return how many children scored better than their parents."""
    count = 0
    for child in history.children.values():
        verdict, parent = history.verdicts.get(child.id), history.verdicts[child.parent]
        if verdict and verdict.score is not None and parent.score is not None:
            count += history.direction.better(verdict.score, parent.score)
    return count


def _alone(settings: RunSettings, operator: str) -> RunSettings:
    """Return the settings with one operator.

    Raises:
        UserError: there is no such operator.
    """
    values = asdict(settings)
    values["search"]["operators"] = {operator: 1.0}
    return settings_of(values)


def main(arguments: list[str]) -> None:
    """Measure and print."""
    own = [each for each in arguments if each.partition("=")[0] in _DEFAULTS]
    options = read_options(own, _DEFAULTS, usage=__doc__ or "")
    seeds, seconds = whole_numbers(options, "seeds", least=0), number(options, "seconds")
    settings = config.resolve(
        ["budget.candidates=1000000", "budget.seconds=null", "islands.count=1"]
        + model_arguments(options)
        + [each for each in arguments if each not in own]
    )
    alone = {name: _alone(settings, name) for name in options["operators"].split(",")}
    prepare(threads=settings.model.threads, kv_cache_gb=settings.model.kv_cache_gb)
    problem = load_problem(Path(settings.problem))
    histories: dict[str, list[RunHistory]] = {name: [] for name in alone}
    with open_pool(problem=problem, workers=settings.evaluation.workers) as pool:
        model = LanguageModel(settings=settings.model, folder=find_weights(settings.model), seed=0)
        for seed in seeds:
            for name, one in alone.items():
                ends = time.monotonic() + seconds
                history = temporary_run(
                    settings=replace(one, seed=seed),
                    problem=problem,
                    model=model,
                    pool=pool,
                    stopped=lambda _, ends=ends: time.monotonic() >= ends,
                ).history
                histories[name].append(history)
                print(f"seed {seed} {name}: {figures([history])}", flush=True)
        model.close()
    result = {name: figures(runs) for name, runs in histories.items()}
    print(json.dumps({"problem": problem.name, "model": settings.model.name, "operators": result}))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    run_as_command(main)
