"""Question: how much of the prompts does each layout have computed, at each K?

Method: real runs of the embedded model with infills (the operator whose children a small model gets
right often enough for the population to move). For each problem one run of ``warmup`` candidates
grows a population; from it, each layout goes on for ``iterations`` iterations at each K, with an
empty prefix cache, the same seed and about as many tokens of other programs on show: ``classic``
shows kept + growth / 2, the mean length of a full window of ``stable``. Counts are vLLM's own: the
scheduler's tokens looked up in and found in the prefix cache, which have to agree with the sums
over the children.

- ``hit_rate``: cached / prompt tokens over all iterations, the cold first one included.
- ``computed_per_child``: prompt tokens computed, per child; ``ratio`` is that of ``classic`` at the
  smallest K over this cell's.
- ``missed``: the computed tokens by reason (``engine.inference.misses``).

``costs`` has what ``engine.search.window`` derives the growth from: p, prefill seconds a token, and
decode seconds a step and token on show at K = 8.

Usage: python -m bench.cache [problems=signal,circle_packing] [layouts=classic,stable,transcript]
       [k=1,2,4,8,16] [iterations=30] [warmup=150] [kept=2048] [growth=1024] [seed=0]
       [model=smollm2]
The last line printed is JSON.
"""

from __future__ import annotations

import json
import logging
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bench.options import model_arguments, read_options, run_as_command, whole_number, whole_numbers
from bench.runs import temporary_run
from engine import config
from engine.core import Problem
from engine.evaluation import EvaluatorPool, open_pool
from engine.inference import LanguageModel, Sampling, find_weights, prepare
from engine.problem import chosen_problem
from engine.settings import PromptSettings, RunSettings
from engine.store import Event, RunHistory

DEFAULTS = {
    "model": "smollm2",
    "problems": "signal,circle_packing",
    "layouts": "classic,stable,transcript",
    "k": "1,2,4,8,16",
    "iterations": "30",
    "warmup": "150",
    "kept": "2048",
    "growth": "1024",
    "seed": "0",
}


def cell(
    *,
    settings: RunSettings,
    problem: Problem,
    model: LanguageModel,
    pool: EvaluatorPool,
    known: Sequence[Event],
    iterations: int,
) -> dict[str, Any]:
    """Go on from ``known`` for some iterations and return what was computed."""
    model.forget()
    seen: set[str] = set()

    def stopped(history: RunHistory) -> bool:
        if not seen:
            seen.update(history.children)
        return len(history.children) >= len(seen) + iterations * settings.search.k

    history = temporary_run(
        settings=settings, problem=problem, model=model, pool=pool, stopped=stopped, known=known
    ).history
    children = [child for name, child in history.children.items() if name not in seen]
    prompt = sum(child.prompt_tokens for child in children)
    cached = sum(child.cached_prompt_tokens for child in children)
    missed: dict[str, int] = {}
    for child in children:
        for reason, tokens in child.missed.items():
            missed[reason.value] = missed.get(reason.value, 0) + tokens
    valid = sum(1 for c in children if c.id in history.verdicts and history.verdicts[c.id].score)
    return {
        "hit_rate": round(cached / prompt, 4),
        "computed_per_child": round((prompt - cached) / len(children), 2),
        "prompt_tokens_mean": round(prompt / len(children), 1),
        "children": len(children),
        "iterations": len({child.iteration for child in children}),
        "valid": valid,
        "missed": dict(sorted(missed.items())),
        "llm_seconds_per_child": round(sum(c.llm_seconds for c in children) / len(children), 4),
    }


def is_whole(history: RunHistory) -> bool:
    """Whether every child of the last call is there."""
    return not history.missing(history.calls[max(history.calls)])


def costs(model: LanguageModel, *, rounds: int = 5) -> dict[str, float]:
    """Return seconds of prefill a token, and of decode a step and cached token at K = 8."""
    rng = np.random.default_rng(0)
    short, long, steps = 512, 3072, 16
    prefill, decode = [], []

    def seconds(token_ids: list[int], *, k: int, tokens: int) -> float:
        sampling = Sampling(temperature=1.0, seed=1, stop=(), max_tokens=tokens)
        began = time.perf_counter()
        list(model.fanout(token_ids=token_ids, sampling=[sampling] * k))
        return time.perf_counter() - began

    for _ in range(rounds):
        spent = {}
        for length in (short, long):
            ids = rng.integers(100, 40_000, size=length).tolist()
            first = seconds(ids, k=1, tokens=1)
            one = seconds(ids, k=8, tokens=1)
            spent[length] = first, seconds(ids, k=8, tokens=1 + steps) - one
        prefill.append((spent[long][0] - spent[short][0]) / (long - short))
        decode.append((spent[long][1] - spent[short][1]) / steps / (long - short))
    model.forget()
    return {
        "prefill_seconds_per_token": statistics.median(prefill),
        "decode_seconds_per_step_and_token": statistics.median(decode),
    }


def configured(base: RunSettings, *, layout: str, k: int, kept: int, growth: int) -> RunSettings:
    """Return ``base`` with a layout and a K."""
    if layout == "classic":
        kept += growth // 2
    prompts = PromptSettings(
        layout=layout,
        history_tokens=kept,
        growth_tokens=growth,
        align=False,
    )
    return replace(base, prompts=prompts, search=replace(base.search, k=k))


def measure(
    problem: Problem, base: RunSettings, model: LanguageModel, options: dict[str, str]
) -> dict[str, Any]:
    """Return all cells of one problem."""
    kept, growth = whole_number(options, "kept"), whole_number(options, "growth")
    iterations, warmup = whole_number(options, "iterations"), whole_number(options, "warmup")
    layouts = options["layouts"].split(",")
    ks = whole_numbers(options, "k")
    cells: dict[str, dict[str, Any]] = {layout: {} for layout in layouts}
    with open_pool(problem=problem, workers=base.evaluation.workers) as pool:
        first = configured(base, layout="stable", k=8, kept=kept, growth=growth)
        known = temporary_run(
            settings=first,
            problem=problem,
            model=model,
            pool=pool,
            stopped=lambda history: history.evaluated >= warmup and is_whole(history),
        ).events
        for k in ks:
            for layout in layouts:
                settings = configured(base, layout=layout, k=k, kept=kept, growth=growth)
                figures = cell(
                    settings=settings,
                    problem=problem,
                    model=model,
                    pool=pool,
                    known=known,
                    iterations=iterations,
                )
                cells[layout][str(k)] = figures
                sys.stdout.write(f"{problem.name} {layout} K={k}: {json.dumps(figures)}\n")
                sys.stdout.flush()
    if "classic" in cells:
        baseline = cells["classic"][str(ks[0])]["computed_per_child"]
        for figures in (each for by_k in cells.values() for each in by_k.values()):
            figures["ratio"] = round(baseline / figures["computed_per_child"], 1)
    return cells


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    base = config.resolve(
        [
            *model_arguments(options),
            "budget.candidates=1000000",
            "budget.seconds=null",
            "islands.count=1",
            "pipeline.speculate=false",  # guesses are calls too, of whose children nothing comes
            "model.max_model_len=8192",
            f"seed={options['seed']}",
        ]
    )
    prepare(threads=base.model.threads, kv_cache_gb=base.model.kv_cache_gb)
    model = LanguageModel(settings=base.model, folder=find_weights(base.model), seed=0)
    result: dict[str, Any] = {"costs": costs(model), "problems": {}}
    sys.stdout.write(f"{result['costs']}\n")
    for name in options["problems"].split(","):
        problem = chosen_problem({"problem": name})
        result["problems"][name] = measure(problem, base, model, options)
    model.close()
    result["options"] = options
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    run_as_command(main)
