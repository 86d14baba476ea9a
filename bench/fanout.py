"""Question: what does a child cost, in seconds of the engine, when K children share a prompt?

Method: prompts in the shape of a classic search's (Parallel Exploration, "What is LLM-guided
discovery"): system message of about 200 tokens, the same in all calls; then a parent of 1,500 and
other programs up to ``prompt`` tokens, both new in every call, because an iteration has another
parent. So a call at any K computes all but the system message once. Completions have exactly
``short`` or ``long`` tokens (the end of the answer is banned). The Ks take turns, round by round,
so that a change of the speed meets them alike; a figure is the median over the rounds, with
the lowest and highest, in engine seconds per child; ``speedup`` is K = 1 over K, of the medians.

Text is tokens drawn by chance: what is computed does not depend on what it means.

Usage: python -m bench.fanout [k=1,2,4,8,16] [rounds=3] [prompt=7600] [short=32] [long=256]
       [model=smollm2]
The last line printed is JSON.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.figures import spread
from bench.options import model_arguments, read_options, run_as_command, whole_number, whole_numbers
from engine import config
from engine.core import UserError
from engine.inference import LanguageModel, Sampling, find_weights, prepare

DEFAULTS = {
    **{"model": "smollm2", "k": "1,2,4,8,16", "rounds": "3"},
    **{"prompt": "7600", "short": "32", "long": "256"},
}
SYSTEM_TOKENS = 200
PARENT_TOKENS = 1500


def seconds_per_child(
    model: LanguageModel, *, token_ids: list[int], k: int, tokens: int, banned: tuple[int, ...]
) -> float:
    """Return engine seconds of one call, over its K children."""
    sampling = [
        Sampling(temperature=0.8, seed=seed, stop=(), max_tokens=tokens, banned=banned)
        for seed in range(k)
    ]
    began = time.perf_counter()
    children = list(model.fanout(token_ids=token_ids, sampling=sampling))
    spent = time.perf_counter() - began
    if any(child.generated_tokens != tokens for child in children):
        raise RuntimeError("a completion is shorter than asked for")
    return spent / k


def ends_of_answer(model: LanguageModel, folder: Path) -> tuple[int, ...]:
    """Return the tokens that end an answer: of the chat template, and of the model's own files."""
    ends = set(model.encode(model.chat_frame(system="").turn)[:1])
    for name in ("config.json", "generation_config.json"):
        path = folder / name
        listed = json.loads(path.read_text()).get("eos_token_id") if path.is_file() else None
        ends.update(listed if isinstance(listed, list) else [] if listed is None else [listed])
    return tuple(sorted(ends))


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    ks = whole_numbers(options, "k")
    rounds, length = whole_number(options, "rounds"), whole_number(options, "prompt")
    if length <= SYSTEM_TOKENS + PARENT_TOKENS:
        raise UserError(f"prompt={length} leaves no room for other programs")
    lengths = {name: whole_number(options, name) for name in ("short", "long")}
    settings = config.resolve([*model_arguments(options), "model.max_model_len=8192"]).model
    prepare(threads=settings.threads, kv_cache_gb=settings.kv_cache_gb)
    weights = find_weights(settings)
    model = LanguageModel(settings=settings, folder=weights, seed=0)
    banned = ends_of_answer(model, weights)
    rng = np.random.default_rng(0)
    system = rng.integers(100, 40_000, size=SYSTEM_TOKENS).tolist()
    seconds: dict[str, dict[int, list[float]]] = {name: {k: [] for k in ks} for name in lengths}
    for _ in range(rounds):
        for name, tokens in lengths.items():
            for k in ks:
                rest = rng.integers(100, 40_000, size=length - SYSTEM_TOKENS).tolist()
                each = seconds_per_child(
                    model, token_ids=system + rest, k=k, tokens=tokens, banned=banned
                )
                seconds[name][k].append(each)
                sys.stdout.write(f"{name} K={k}: {each:.3f} s a child\n")
                sys.stdout.flush()
    model.close()
    result: dict[str, Any] = {
        "prompt_tokens": length,
        "system_tokens": SYSTEM_TOKENS,
        "parent_tokens": PARENT_TOKENS,
        "completion_tokens": lengths,
        "rounds": rounds,
    }
    for name, by_k in seconds.items():
        figures = {k: spread(values, digits=4) for k, values in by_k.items()}
        first = figures[ks[0]]["median"]
        result[name] = {
            str(k): {**each, "speedup": round(first / each["median"], 2)}
            for k, each in figures.items()
        }
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    run_as_command(main)
