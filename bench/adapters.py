"""Question: what do log-probabilities and adapters cost in tokens a second, and how long is a swap?

Method: three engines in this process: one that does not learn, one for each adapter. K children of
a prompt of ``prefix`` tokens, which is in the cache, are decoded to ``tokens`` tokens each, in
``rounds`` rounds. In each round every mode has its turn, another one first, so that a change of the
machine's speed meets all:

- ``none``: the engine that does not learn;
- ``logprobs``: the engine for ``last_block``, asked for the model itself;
- ``last_block``, ``full``: an adapter with random weights, of rank 16.

``rate`` is the median of tokens for each second of the process's CPU time, which other work on the
machine disturbs less than the clock, and ``of_none`` that of the ratio to ``none`` in the same
round. With one thread (OMP_NUM_THREADS=1) it is that of an idle machine. ``swap_ms`` is the
median of the milliseconds to load a version while the children of another one are decoded,
``longest_swap_ms`` the longest.

Usage: python -m bench.adapters [k=8,64] [prefix=500] [tokens=32] [rounds=7] [swaps=8]
       [model=smollm2]
The last line printed is JSON.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.options import model_arguments, read_options, run_as_command, whole_number, whole_numbers
from engine import config
from engine.inference import LanguageModel, Sampling, find_weights, prepare

ADAPTERS: Mapping[str, tuple[str, ...]] = {
    "last_block": ("q_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
    "full": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
}
WHOLE = ("model.top_p=null", "model.top_k=null", "model.min_p=0")
"""A model that learns may draw every token, whatever its preset has."""
DEFAULTS = {
    "model": "smollm2",
    "k": "8,64",
    "prefix": "500",
    "tokens": "32",
    "rounds": "7",
    "swaps": "8",
}


def random_adapter(
    weights: Path, folder: Path, *, kind: str, seed: int, rank: int = 16, scale: float = 0.02
) -> Any:
    """Write an adapter with random weights to a folder, and return peft's model with it.

    Args:
        weights: the model's folder.
        folder: that is made.
        kind: of `ADAPTERS`.
        seed: of the weights.
        rank: of the adapter.
        scale: standard deviation of B.
    """
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    from engine.learning.adapter import save_adapter

    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32)
    last = model.config.num_hidden_layers - 1
    adapted = LoraConfig(
        r=rank,
        lora_alpha=rank,
        target_modules=list(ADAPTERS[kind]),
        layers_to_transform=[last] if kind == "last_block" else None,
    )
    made = get_peft_model(model, adapted)
    for name, weight in made.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=scale)
    save_adapter(made, folder, weights=weights)
    return made


def rate(
    model: LanguageModel, prompt: Sequence[int], *, k: int, tokens: int, version: int
) -> float:
    """Return tokens for each CPU second of one call, whose children all have the same length."""
    banned = tuple(model.encode("<|im_end|>") + model.encode("<|endoftext|>"))
    sampling = [
        Sampling(temperature=0.8, seed=seed, stop=(), max_tokens=tokens, banned=banned)
        for seed in range(k)
    ]
    began = time.process_time()
    children = list(model.fanout(token_ids=prompt, sampling=sampling, adapter=version))
    seconds = time.process_time() - began
    return sum(child.generated_tokens for child in children) / seconds


def swaps(model: LanguageModel, prompt: Sequence[int], folders: Sequence[Path]) -> list[float]:
    """Return the milliseconds to load each folder while the version before it is decoded."""
    times = []
    for version, folder in enumerate(folders, start=2):
        one = Sampling(temperature=1.0, seed=version, stop=(), max_tokens=4)
        fan = model.fanout(token_ids=prompt, sampling=[one] * 8, adapter=version - 1)
        model.step()
        began = time.perf_counter()
        model.adopt(version, folder)
        times.append(1e3 * (time.perf_counter() - began))
        list(fan)
    return times


def main(arguments: Sequence[str]) -> None:
    """Answer the question."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    rounds, tokens = whole_number(options, "rounds"), whole_number(options, "tokens")
    count, widths = whole_number(options, "swaps"), whole_numbers(options, "k")
    settings = {
        kind: config.resolve([*model_arguments(options), *WHOLE, *learning])
        for kind, learning in {
            "none": [],
            **{kind: ["learning=grpo", f"learning.adapter={kind}"] for kind in ADAPTERS},
        }.items()
    }
    base = settings["none"].model
    prepare(threads=base.threads, kv_cache_gb=base.kv_cache_gb)
    weights = find_weights(base)
    with tempfile.TemporaryDirectory() as temporary:
        models, times = {}, {}
        for kind, each in settings.items():
            models[kind] = model = LanguageModel(
                settings=base, folder=weights, seed=0, learning=each.learning
            )
            if kind in ADAPTERS:
                folders = [Path(temporary) / f"{kind}-{seed}" for seed in range(count + 1)]
                for seed, folder in enumerate(folders):
                    random_adapter(weights, folder, kind=kind, seed=seed)
                model.adopt(1, folders[0])
                times[kind] = swaps(model, model.encode("Once upon a time"), folders[1:])
        text = "".join(f"{word} " for word in range(whole_number(options, "prefix")))
        prompt = models["none"].encode(text)[: whole_number(options, "prefix")]
        modes = {
            "none": (models["none"], 0),
            "logprobs": (models["last_block"], 0),
            **{kind: (models[kind], count + 1) for kind in ADAPTERS},
        }
        result: dict[str, Any] = {}
        for k in widths:
            rates: dict[str, list[float]] = {mode: [] for mode in modes}
            for turn in range(-1, rounds):  # the first one fills the caches
                names = list(modes)
                for mode in [*names[turn % 4 :], *names[: turn % 4]]:
                    model, version = modes[mode]
                    found = rate(model, prompt, k=k, tokens=tokens, version=version)
                    if turn >= 0:
                        rates[mode].append(found)
            result[f"k={k}"] = {
                mode: {
                    "rate": round(median(found), 1),
                    "of_none": round(median(map(_ratio, found, rates["none"])), 3),
                }
                for mode, found in rates.items()
            }
            sys.stdout.write(f"k={k}: {result[f'k={k}']}\n")
            sys.stdout.flush()
        for model in models.values():
            model.close()
    loaded = {
        kind: {"swap_ms": round(median(each), 2), "longest_swap_ms": round(max(each), 2)}
        for kind, each in times.items()
    }
    sys.stdout.write(json.dumps({"options": options, "decode": result, "swap": loaded}) + "\n")


def _ratio(rate: float, other: float) -> float:
    return rate / other


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    run_as_command(main)
