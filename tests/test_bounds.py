"""The bounds of a run's settings, and the message that names the key at fault."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import asdict, replace

import pytest

from engine import config
from engine.core import UserError
from engine.settings import RunSettings, settings_of


@pytest.fixture(scope="module")
def defaults() -> RunSettings:
    return config.resolve([])


def changed(settings: RunSettings, values: Mapping[str, object]) -> RunSettings:
    """Return ``settings`` with each key of ``values``, dotted, set to its value."""
    nested = asdict(settings)
    nested["search"]["novelty"] = {"policy": "cosine"}
    for key, value in values.items():
        *path, last = key.split(".")
        functools.reduce(lambda section, name: section[name], path, nested)[last] = value
    return settings_of(nested)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("search.k", 0),
        ("search.k", -8),
        ("search.k", 10**9),
        ("search.temperature_min", 0.0),
        ("search.temperature_min", math.nan),
        ("search.temperature_max", math.inf),
        ("search.temperature_max", 0.1),
        ("islands.count", 0),
        ("islands.count", -1),
        ("islands.count", 1025),
        ("islands.migrate_every", -1),
        ("islands.migrants", 0),
        ("pipeline.speculate", "maybe"),
        ("pipeline.speculate", "True"),
        ("pipeline.children", 0),
        ("pipeline.children", -3),
        ("pipeline.candidates", 0),
        ("prompts.layout", "newest"),
        ("prompts.history_tokens", -1),
        ("prompts.history_tokens", 2**24 + 1),
        ("prompts.growth_tokens", -1),
        ("prompts.growth_tokens", 2**24 + 1),
        ("search.failures", -1),
        ("pool.mixing", 1.5),
        ("pool.elites", math.nan),
        ("pool.most_of_run", 0),
        ("pipeline.ahead", 0),
        ("search.novelty", 0.99),
        ("search.novelty.policy", "bert"),
        ("search.novelty.threshold", 0.0),
        ("search.novelty.threshold", 1.0),  # over which no cosine is
        ("search.novelty.threshold", math.nan),
        ("search.archive", "behaviour"),
        ("search.parent.policy", "greedy"),
        ("search.parent.p_elite", -0.1),
        ("search.parent.p_elite", math.nan),
        ("search.parent.p_uniform", -0.1),
        ("search.parent.p_uniform", 0.6),  # with p_elite = 0.5
        ("search.parent.p_uniform", math.nan),
        ("search.parent.gamma", -1.0),
        ("search.parent.gamma", math.inf),
        ("search.parent.epsilon", 0.0),
        ("search.parent.epsilon", 1.5),
        ("search.parent.epsilon", math.nan),
        ("search.operators", {"infill": 0.0}),
        ("search.operators", {}),
        ("search.operators", {"crossover": 1.0, "repair": 1.0, "rewrite": 0.0}),
        ("search.mix.policy", "ucb"),
        ("islands.topology.policy", "star"),
        ("width.policy", "wide"),
        ("search.operators", {"infill": 1e308, "diff": 1e308}),
        ("search.operators.infill", -1.0),
        ("search.operators.infill", math.nan),
        ("budget.candidates", -1),
        ("budget.candidates", 10**400),
        ("budget.seconds", -1.0),
        ("budget.seconds", math.inf),
        ("budget.seconds", math.nan),
        ("budget.tokens", -1),
        ("budget.tokens", 2**63),
        ("budget.money", -0.5),
        ("budget.money", math.nan),
        ("budget.money", 1.0),  # while all prices are 0
        ("budget.target", math.inf),
        ("budget.target", math.nan),
        ("budget.patience", 0),
        ("budget.patience", 2**63),
        ("budget.prices.prompt", -1.0),
        ("budget.prices.cached_prompt", math.nan),
        ("budget.prices.generated", math.inf),
        ("evaluation.workers", 0),
        ("evaluation.workers", 10**9),
        ("evaluation.cascade.keep", 0.0),
        ("evaluation.cascade.keep", 1.1),
        ("evaluation.cascade.keep", math.nan),
        ("evaluation.cascade.audit", 0.0),
        ("evaluation.cascade.audit", 1.1),
        ("evaluation.cascade.audit", math.nan),
        ("evaluation.cascade.correlation_min", -1.1),
        ("evaluation.cascade.correlation_min", 1.1),
        ("evaluation.cascade.correlation_min", math.nan),
        ("evaluation.cascade.window", 15),
        ("evaluation.cascade.window", 10**9),
        ("data", ""),
        ("model.max_model_len", 10),
        ("model.max_tokens", 0),
        ("model.max_tokens", 10**6),
        ("model.kv_cache_gb", 0),
        ("model.step_seconds", 0),
        ("model.step_seconds", math.nan),
        ("model.max_num_seqs", 0),
        ("model.max_num_batched_tokens", 0),
        ("model.block_size", 0),
        ("model.top_p", 0.0),
        ("model.top_p", 1.01),
        ("model.top_k", -1),
        ("model.min_p", -0.01),
        ("model.min_p", 1.01),
        ("model.thinking", "no"),
        ("model.gpu_memory_utilization", 0.0),
        ("model.gpu_memory_utilization", 1.01),
        ("model.gpu_memory_utilization", math.nan),
        ("model.threads", 0),
        ("model.path", ""),
        ("runs", ""),
        ("seed", -1),
        ("seed", 2**63),
        ("name", ""),
        ("name", "."),
        ("name", ".."),
        ("name", "a/b"),
        ("name", "/a"),
        ("name", "a\nb"),
        ("name", "a\0b"),
        ("name", "a\x1b[31m"),
        ("name", "\udcff"),
        ("name", "é" * 101),
    ],
)
def test_a_value_out_of_bounds_is_refused_by_the_name_of_its_key(
    defaults: RunSettings, key: str, value: object
) -> None:
    with pytest.raises(UserError) as refused:
        changed(defaults, {key: value})
    assert str(refused.value).startswith(f"{key} is ") and "it must be" in str(refused.value)
    assert "\n" not in str(refused.value) and "\x1b" not in str(refused.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("search.k", 1),
        ("search.temperature_max", 0.7),  # the same as the least
        ("islands.count", 1024),
        ("islands.migrate_every", 0),
        ("islands.migrants", 1),
        ("islands.migrants", 10**9),
        ("pipeline.children", 1),
        ("pipeline.children", None),
        ("pipeline.candidates", 1),
        ("pipeline.candidates", None),
        ("prompts.layout", "classic"),
        ("prompts.layout", "transcript"),
        ("prompts.history_tokens", 0),
        ("prompts.history_tokens", 2**24),
        ("prompts.growth_tokens", 0),
        ("search.failures", 0),
        ("search.archive", "structure"),
        ("search.archive", "problem"),
        ("evaluation.cascade.keep", 1.0),
        ("evaluation.cascade.audit", 0.001),
        ("evaluation.cascade.audit", 1.0),
        ("evaluation.cascade.correlation_min", -1.0),
        ("evaluation.cascade.correlation_min", 1.0),
        ("evaluation.cascade.window", 16),
        ("data", None),
        ("search.parent.gamma", 0.0),
        ("search.parent.epsilon", 1.0),
        ("search.operators", {"diff": 1e-300}),
        ("search.operators", {"diff": 1e-300, "crossover": 1.0, "repair": 1.0}),
        ("search.mix.policy", "kl_ucb"),
        ("budget.candidates", 0),
        ("budget.seconds", 0.0),
        ("budget.seconds", None),
        ("budget.candidates", None),
        ("budget.tokens", 0),
        ("budget.tokens", 2**63 - 1),
        ("budget.target", -1e300),
        ("budget.patience", 1),
        ("budget.prices.prompt", 0.0),
        ("model.gpu_memory_utilization", 1.0),
        ("model.threads", None),
        ("seed", 2**63 - 1),
        ("name", None),
        ("name", "é" * 100),
        ("name", "a run, it's [bold]"),
        ("name", "search.k=1_seed=0"),
    ],
)
def test_a_value_at_its_bound_is_taken(defaults: RunSettings, key: str, value: object) -> None:
    changed(defaults, {key: value})


@pytest.mark.parametrize("key", ["candidates", "seconds", "tokens", "money"])
def test_one_limit_that_every_run_reaches_is_enough_and_none_is_not(
    defaults: RunSettings, key: str
) -> None:
    limits = ("candidates", "seconds", "tokens", "money")
    none = {f"budget.{each}": None for each in limits} | {"budget.target": 1.0}
    with pytest.raises(
        UserError, match=r"budget\.candidates is None; it must be a number, or else"
    ):
        changed(defaults, none | {"budget.patience": 1})
    paid = none | {"budget.prices.generated": 0.5, f"budget.{key}": 1}
    assert getattr(changed(defaults, paid).budget, key) == 1


@pytest.mark.parametrize("tenths", range(11))
def test_the_shares_of_greedy_and_uniform_choice_may_add_up_to_one(
    defaults: RunSettings, tenths: int
) -> None:
    # 1 - 0.9 is a little less than 0.1: the sum is what has a bound.
    shares = {"p_elite": tenths / 10, "p_uniform": (10 - tenths) / 10}
    parent = changed(
        defaults, {f"search.parent.{name}": share for name, share in shares.items()}
    ).search.parent
    assert (parent.p_elite, parent.p_uniform) == tuple(shares.values())


def test_an_unknown_operator_is_refused_with_the_valid_ones(defaults: RunSettings) -> None:
    with pytest.raises(
        UserError, match="guess is no operator; it must be one of crossover, diff, infill"
    ):
        changed(defaults, {"search.operators": {"guess": 1.0}})


def test_drafts_are_refused_with_the_operator_that_bans_tokens(defaults: RunSettings) -> None:
    drafts = {"model.engine": {"speculative_config": {"method": "ngram"}}}
    with pytest.raises(UserError, match=r"infill is 1.0; it must be 0 with model.engine.specul"):
        changed(defaults, drafts)
    changed(defaults, {**drafts, "search.operators": {"infill": 0.0, "rewrite": 1.0}})


def test_what_vllm_refuses_of_every_request_is_refused_before_one_is_made(
    defaults: RunSettings,
) -> None:
    with pytest.raises(UserError, match=r"temperature_max is 2.5; it must be at most 2 with a la"):
        changed(defaults, {"search.temperature_max": 2.5})
    changed(defaults, {"search.temperature_max": 2.0})
    mutating = ["model=mutation", "search.temperature_max=1000"]  # the number of mutations
    with pytest.raises(UserError, match=r"temperature_max is 1001.0; it must be at most 1000 with"):
        config.resolve([*mutating, "search.temperature_max=1001"])
    config.resolve(mutating)
    drafts = {"model.engine": {"speculative_config": {"method": "ngram"}}, "model.min_p": 0.1}
    words = {"search.operators": {"infill": 0.0, "rewrite": 1.0}}
    with pytest.raises(UserError, match=r"min_p is 0.1; it must be 0 with model.engine.specul"):
        changed(defaults, {**drafts, **words})


def test_a_value_is_checked_wherever_settings_are_made(defaults: RunSettings) -> None:
    with pytest.raises(ValueError, match="k_max"):
        replace(defaults.width, k_max=0)
