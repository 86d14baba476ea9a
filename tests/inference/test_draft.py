"""Drafts: what the engine is told, the repair of vLLM's sampling, and what comes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numba  # before the engine: without a repair, vLLM can't start after it
import pytest
from scipy import stats

from engine import config
from engine.inference import LanguageModel, Sampling, find_weights, prepare
from engine.inference.draft import TOKENS, speculative_config
from engine.settings import ModelSettings

TEXT = """def first(values):
    total = 0
    for value in values:
        total = total + value
    return total


def second(values):
    total = 0
    for value in values:
"""
GRAMMAR = 'root ::= "total" ("+" | "-" | "*") "value" [0-9]+ "\\n"'


def test_no_drafts_unless_asked_for() -> None:
    assert speculative_config("none") is None
    with pytest.raises(ValueError, match="'eagle'"):
        speculative_config("eagle")
    ngram = speculative_config("ngram")
    assert ngram is not None
    assert ngram["method"] == "ngram" and ngram["num_speculative_tokens"] == TOKENS


@pytest.fixture(scope="module")
def settings() -> ModelSettings:
    assert numba.__version__
    return config.resolve(["model=smollm2", "model.max_model_len=1024"]).model


@contextmanager
def loaded(settings: ModelSettings, draft: str) -> Iterator[LanguageModel]:
    prepare(threads=settings.threads, kv_cache_gb=settings.kv_cache_gb)
    model = LanguageModel(
        settings=replace(settings, draft=draft), folder=find_weights(settings), seed=0
    )
    try:
        yield model
    finally:
        model.close()


def answers(model: LanguageModel, prompt: list[int], *each: Sampling) -> list[tuple[int, ...]]:
    fan = model.fanout(token_ids=prompt, sampling=each)
    return [child.token_ids for child in sorted(fan, key=lambda child: child.index)]


def sampling(seed: int, *, temperature: float, tokens: int, grammar: str | None = None) -> Sampling:
    return Sampling(temperature=temperature, seed=seed, stop=(), max_tokens=tokens, grammar=grammar)


def observed(model: LanguageModel) -> dict[str, Any]:
    """Return what both kinds of engine are asked; the prompt is cached but for its last token."""
    prompt = model.encode(TEXT)
    short = prompt[: len(prompt) // model.block_size * model.block_size + 1]
    greedy = [sampling(seed, temperature=0.0, tokens=32) for seed in range(3)]
    drawn = [sampling(seed, temperature=0.9, tokens=2) for seed in range(400)]
    ruled = [sampling(s, temperature=0.9, tokens=24, grammar=GRAMMAR) for s in range(16)]
    result: dict[str, Any] = {"greedy": answers(model, prompt, *greedy)}
    for name, ids in (("prompt", prompt), ("short", short)):
        result[name] = Counter(child[:2] for child in answers(model, ids, *drawn))
    fan = model.fanout(token_ids=prompt, sampling=ruled)
    result["ruled"] = [child.text for child in fan if child.finish_reason == "stop"]
    fan = model.fanout(token_ids=prompt, sampling=greedy)
    for _ in range(3):
        fan.step()
    fan.abort(1)
    result["aborted"] = sorted((child.index, child.token_ids) for child in fan)
    return result


@pytest.mark.slow
def test_drafts_change_the_speed_and_nothing_else(settings: ModelSettings) -> None:
    with loaded(settings, "none") as model:
        plain = observed(model)
    with loaded(settings, "ngram") as model:
        drafted = observed(model)
    assert drafted["greedy"] == plain["greedy"]
    for name in ("prompt", "short"):
        assert same_distribution(drafted[name], plain[name]) > 1e-4
    assert drafted["ruled"]
    assert all(text.startswith("total") and text.endswith("\n") for text in drafted["ruled"])
    (_, first), (_, second), (_, third) = drafted["aborted"]
    assert first == third == plain["aborted"][0][1]
    assert second == first[: len(second)] and len(second) < len(first)


def same_distribution(first: Counter[Any], second: Counter[Any]) -> float:
    """Return the p-value of a chi-squared test of homogeneity; rare outcomes count as one."""
    common = [key for key in first | second if first[key] + second[key] >= 10]
    table = [[each[key] for key in common] for each in (first, second)]
    for row, each in zip(table, (first, second), strict=True):
        row.append(each.total() - sum(row) + 1)
    return float(stats.chi2_contingency(table).pvalue)
