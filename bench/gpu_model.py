"""The stages of ``bench.gpu`` that have a model loaded, and what all stages share."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.fanout import ends_of_answer, seconds_per_child
from bench.floor import read_rate, step_bytes
from bench.options import number, whole_number
from bench.runs import temporary_run
from bench.throughput import NotingModel, bare_llm, bare_rate, engine_rate
from engine.core import Problem
from engine.evaluation import EvaluatorPool, open_pool
from engine.inference import Sampling, find_weights
from engine.inference.fanout import truncation
from engine.problem import load_problem
from engine.settings import RunSettings

TOKENS = 48  # that each child generates in `decode` and `fanout`
SETTLED = 4  # steps after which those of `decode` count
COUNTED = 120  # numbers in the prompt of `correctness`
BARE_TOKENS = 512  # of a child in `bare`, at most
Figures = dict[str, Any]


class NotRunError(Exception):
    """A stage does not apply; the message says why."""


@dataclass(kw_only=True)
class Bench:
    """What the stages share; from ``ks`` on it is there once the model is loaded.

    Attributes:
        ends: when the whole benchmark has to be over, on the monotonic clock.
        cores: of the evaluators.
        ks: numbers of children that the engine runs at once.
        rate: bytes a second that are read from the memory with the model.
        banned: tokens that would end an answer.
    """

    options: Mapping[str, str]
    settings: RunSettings
    on_gpu: bool
    ends: float
    stack: ExitStack
    cores: list[int] = field(default_factory=list)
    ks: list[int] = field(default_factory=list)
    rate: float = 0.0
    banned: tuple[int, ...] = ()
    model: NotingModel | None = None
    pool: EvaluatorPool | None = None

    @property
    def loaded(self) -> NotingModel:
        """The model."""
        if self.model is None:
            raise NotRunError("the model is not loaded")
        return self.model

    @property
    def runs_model(self) -> bool:
        """Whether the model can run here; the embedded one needs no GPU."""
        return self.on_gpu or self.settings.model.path is None

    @property
    def folder(self) -> Path:
        """The model's folder."""
        return find_weights(self.settings.model)

    @functools.cached_property
    def problem(self) -> Problem:
        """What is searched for."""
        return load_problem(Path(self.settings.problem))

    def evaluators(self) -> EvaluatorPool:
        """Return the evaluators, started when they are first asked for."""
        if self.pool is None:
            workers = len(self.cores)
            pool = open_pool(problem=self.problem, workers=workers, cores=self.cores)
            self.pool = self.stack.enter_context(pool)
            self.pool.check_walls(strict=False)  # waits until it is warm
        return self.pool

    def numbers(self, key: str) -> list[int]:
        """Return an option of whole numbers."""
        return [whole_number({key: each}, key) for each in self.options[key].split(",")]

    def prefixes(self) -> list[int]:
        """Return the lengths of prompts, no longer than the model takes."""
        most = self.settings.model.max_model_len - TOKENS
        return sorted({min(each, most) for each in self.numbers("prefix")})


def load(bench: Bench) -> Figures:
    """Load the model, and return how long that took and how much KV there is room for."""
    folder = bench.folder
    device, size = ("cuda", 2**32) if bench.on_gpu else ("cpu", 2**29)
    bench.rate = read_rate(device, size=size)
    began = time.perf_counter()
    model = NotingModel(settings=bench.settings.model, folder=folder, seed=0)
    bench.model = bench.stack.enter_context(closing(model))
    model.requests = []
    bench.banned = ends_of_answer(model, folder)
    made = model._engine.vllm_config
    most = made.scheduler_config.max_num_seqs
    bench.ks = [k for k in bench.numbers("k") if k <= most] or [most]
    return {
        "load_seconds": round(time.perf_counter() - began, 1),
        "read_gb_per_second": round(bench.rate / 1e9, 1),
        "block_size": model.block_size,
        "kv_blocks": made.cache_config.num_gpu_blocks,
    }


def correctness(bench: Bench) -> Figures:
    """Return how many children continue a series of numbers."""
    model = bench.loaded
    if bench.options["load_format"] == "dummy":
        raise NotRunError("load_format=dummy has no weights")
    prompt = model.encode("".join(f"{each}, " for each in range(1, COUNTED + 1)).rstrip(" "))
    wanted = ", ".join(str(COUNTED + each) for each in (1, 2, 3))
    sampling = [Sampling(temperature=0.0, seed=0, stop=(), max_tokens=24)] * max(bench.ks)
    model.forget()
    texts = [
        child.text
        for _ in ("cold", "warm")
        for child in model.fanout(token_ids=prompt, sampling=sampling)
    ]
    wrong = [text for text in texts if not text.strip().startswith(wanted)]
    if wrong:
        raise RuntimeError(f"{len(wrong)} of {len(texts)} go on with {wrong[0]!r}, not {wanted!r}")
    return {"children": len(texts), "right": len(texts), "alike": len(set(texts)) == 1}


def decode(bench: Bench) -> Figures:
    """Return ms a step beside the least that reading takes, for each K and prompt."""
    model, cells = bench.loaded, []
    for prefix in bench.prefixes():
        prompt = _prompt(seed=prefix, tokens=prefix)
        list(model.fanout(token_ids=prompt, sampling=_sampling(bench, k=1, tokens=1)))
        for k in bench.ks:
            steps = []
            sampling = _sampling(bench, k=k, tokens=TOKENS)
            with closing(model.fanout(token_ids=prompt, sampling=sampling)) as fan:
                while fan.indices:
                    began = time.perf_counter()
                    model.step()
                    steps.append(time.perf_counter() - began)
            spent = statistics.median(steps[SETTLED:])
            least = step_bytes(bench.folder, k=k, prefix=prefix, suffix=TOKENS / 2)
            floor = (least.weights + least.unshared) / bench.rate
            shared = (least.weights + least.shared) / bench.rate
            cell = {"ms": spent, "floor_ms": floor, "shared_floor_ms": shared}
            milliseconds = {key: round(1e3 * each, 3) for key, each in cell.items()}
            over = round(spent / floor, 2)
            cells.append({"prefix": prefix, "k": k, **milliseconds, "over_floor": over})
    return {"cells": cells}


def fanout(bench: Bench) -> Figures:
    """Return seconds a child for each K, of a new prompt each, and the gain over the first K."""
    model, seconds, prefix = bench.loaded, {}, max(bench.prefixes())
    for k in bench.ks:
        each = []
        for seed in (1, 2, 3):  # the first one meets kernels that are still to be made
            prompt = _prompt(seed=1000 * k + seed, tokens=prefix)
            each.append(
                seconds_per_child(model, token_ids=prompt, k=k, tokens=TOKENS, banned=bench.banned)
            )
        seconds[str(k)] = round(statistics.mean(each[1:]), 5)
    first = next(iter(seconds.values()))
    gains = {k: round(first / spent, 2) for k, spent in seconds.items()}
    return {"prompt_tokens": prefix, "seconds_per_child": seconds, "gain": gains}


def bare(bench: Bench) -> Figures:
    """Return the engine's rate in a search, and that of vLLM alone with the same requests."""
    model, pool = bench.loaded, bench.evaluators()
    own = bench.settings.model
    settings = replace(
        bench.settings,
        model=replace(own, max_tokens=min(BARE_TOKENS, own.max_tokens)),
        islands=replace(bench.settings.islands, count=1),
    )
    problem, calls = bench.problem, whole_number(bench.options, "calls")
    _, ours = (  # the first one warms what is lazy
        engine_rate(settings=settings, problem=problem, model=model, pool=pool, calls=each)
        for each in (1, calls)
    )
    model.forget()
    llm = bare_llm(model, settings=own, folder=bench.folder)
    alone = bare_rate(llm, model.requests, truncation(own, bench.folder))
    rates = {"engine_tokens_per_second": round(ours, 1), "bare_tokens_per_second": round(alone, 1)}
    return {**rates, "ratio": round(ours / alone, 3)}


def run(bench: Bench) -> Figures:
    """Return what a search makes of its time."""
    model, pool = bench.loaded, bench.evaluators()
    model.forget()
    model.requests = []
    began = time.monotonic()
    ends = min(began + number(bench.options, "run"), bench.ends - 10)
    history = temporary_run(
        settings=bench.settings,
        problem=bench.problem,
        model=model,
        pool=pool,
        stopped=lambda _: time.monotonic() >= ends,
    ).history
    spent = time.monotonic() - began
    made = len(history.children)
    return {
        **{"wall_seconds": round(spent, 1), "children": made},
        "children_per_second": round(made / spent, 3),
        "tokens_per_second": round(history.generated_tokens / spent, 1),
        "hit_rate": round(history.hit_rate, 4),
        **{name: getattr(history, name) for name in ("evaluated", "valid", "best_score")},
    }


def _prompt(*, seed: int, tokens: int) -> list[int]:
    """Return tokens drawn by chance, so that nothing of it is cached."""
    drawn: list[int] = np.random.default_rng(seed).integers(100, 40_000, size=tokens).tolist()
    return drawn


def _sampling(bench: Bench, *, k: int, tokens: int) -> list[Sampling]:
    """Return the sampling of children that have exactly so many tokens."""
    return [
        Sampling(temperature=0.8, seed=seed, stop=(), max_tokens=tokens, banned=bench.banned)
        for seed in range(k)
    ]
