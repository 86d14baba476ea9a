"""Question: how many tokens a second does the engine lose against vLLM alone?

Method: in each round, a real run of the model on ``problem`` (search, prompts, parsing,
evaluators, log; one island) makes ``calls`` calls, and what it sent to vLLM is noted.
Then ``vllm.LLM.generate`` gets the same requests, call by call, with nothing else going on, twice;
then the run is made again. Each begins with an empty prefix cache, and both engines have the same
arguments and threads; on a GPU, where a second one has no room, they are one and the same.
``ratio`` is the engine's generated tokens a second over the bare ones, of one round.

Usage: python -m bench.throughput [problem=signal] [calls=20] [rounds=5] [speculate=true]
       [threads=1] [model=smollm2]
The last line printed is JSON.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from bench.figures import spread
from bench.options import model_arguments, read_options, run_as_command, whole_number
from bench.runs import temporary_run
from engine import config
from engine.core import Problem
from engine.evaluation import EvaluatorPool, evaluator_cores, model_cores, open_pool
from engine.inference import (
    FanOut,
    LanguageModel,
    Sampling,
    find_weights,
    in_its_format,
    is_cpu_build,
    prepare,
)
from engine.inference.engine_options import engine_args
from engine.inference.fanout import Truncation, sampling_params, truncation
from engine.problem import chosen_problem
from engine.settings import ModelSettings, RunSettings

DEFAULTS = {
    "model": "smollm2",
    "problem": "signal",
    "calls": "20",
    "rounds": "5",
    "speculate": "true",
    "threads": "1",
}

Request = tuple[list[int], Sequence[Sampling]]


class NotingModel(LanguageModel):
    """A language model that notes what it is asked."""

    requests: list[Request]

    def fanout(
        self, *, token_ids: Sequence[int], sampling: Sequence[Sampling], adapter: int = 0
    ) -> FanOut:
        """See `LanguageModel.fanout`."""
        self.requests.append((list(token_ids), sampling))
        return super().fanout(token_ids=token_ids, sampling=sampling, adapter=adapter)


def engine_rate(
    *, settings: RunSettings, problem: Problem, model: NotingModel, pool: EvaluatorPool, calls: int
) -> float:
    """Return generated tokens a second of a run; ``model.requests`` has what it sent."""
    model.forget()
    model.requests = []
    began = time.perf_counter()
    history = temporary_run(
        settings=settings,
        problem=problem,
        model=model,
        pool=pool,
        stopped=lambda history: (
            len(history.calls) >= calls and not history.missing(history.calls[max(history.calls)])
        ),
    ).history
    seconds = time.perf_counter() - began
    wasted = sum(each.generated_tokens for each in history.given_up)
    return (history.generated_tokens + wasted) / seconds


def bare_llm(model: LanguageModel | None, *, settings: ModelSettings, folder: Path) -> Any:
    """Return vLLM's own `LLM`: round the engine of ``model``, or with a new one if that is None."""
    from vllm import LLM
    from vllm.v1.engine.llm_engine import LLMEngine

    args = engine_args(settings=settings, folder=str(folder), seed=0)
    if model is None:
        return LLM.from_engine_args(args)
    with mock.patch.object(LLMEngine, "from_engine_args", return_value=model._engine):
        return LLM.from_engine_args(args)


def bare_rate(llm: Any, requests: Sequence[Request], truncation: Truncation) -> float:
    """Return generated tokens a second of vLLM alone."""
    from vllm.inputs import tokens_input

    llm.reset_prefix_cache()
    began = time.perf_counter()
    tokens = 0
    for token_ids, sampling in requests:
        outputs = llm.generate(
            [tokens_input(token_ids) for _ in sampling],
            [sampling_params(each, truncation) for each in sampling],
            use_tqdm=False,
        )
        tokens += sum(len(output.outputs[0].token_ids) for output in outputs)
    return tokens / (time.perf_counter() - began)


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    calls, rounds = whole_number(options, "calls"), whole_number(options, "rounds")
    base = config.resolve(
        [
            *model_arguments(options),
            "budget.candidates=1000000",
            "budget.seconds=null",
            "islands.count=1",
            f"pipeline.speculate={options['speculate']}",
        ]
    )
    cores = evaluator_cores(1)  # before this process gives them away
    os.sched_setaffinity(0, model_cores(cores))
    prepare(threads=whole_number(options, "threads"), kv_cache_gb=base.model.kv_cache_gb)
    problem = chosen_problem({"problem": options["problem"]})
    weights = find_weights(base.model)
    base = replace(base, model=in_its_format(base.model, folder=weights))
    model = NotingModel(settings=base.model, folder=weights, seed=0)
    llm = bare_llm(None if is_cpu_build() else model, settings=base.model, folder=weights)
    ratios: list[float] = []
    ours: list[float] = []
    bare: list[float] = []
    with open_pool(problem=problem, workers=1, cores=cores) as pool:
        pool.check_walls(strict=False)  # waits until it is warm

        def run(seed: int) -> float:
            settings = replace(base, seed=seed)
            return engine_rate(
                settings=settings, problem=problem, model=model, pool=pool, calls=calls
            )

        run(1000)  # warms what is lazy
        bare_rate(llm, model.requests, truncation(base.model, weights))
        for seed in range(rounds):
            first = run(seed)
            alone = [
                bare_rate(llm, model.requests, truncation(base.model, weights)) for _ in range(2)
            ]
            ours.append((first + run(seed)) / 2)
            bare.append(sum(alone) / 2)
            ratios.append(ours[-1] / bare[-1])
            sys.stdout.write(f"{ours[-1]:.1f} and {bare[-1]:.1f} tokens/s: {ratios[-1]:.3f}\n")
            sys.stdout.flush()
    result = {
        "options": options,
        "engine_tokens_per_second": spread(ours, digits=1),
        "bare_tokens_per_second": spread(bare, digits=1),
        "ratio": spread(ratios),
    }
    model.close()
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    run_as_command(main)
