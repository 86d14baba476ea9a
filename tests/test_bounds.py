"""The bounds of a run's settings, and the message that names the key at fault."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from engine import config
from engine.bounds import check
from engine.core import UserError
from engine.settings import RunSettings


@pytest.fixture(scope="module")
def defaults() -> RunSettings:
    return config.resolve([])


def changed(settings: Any, key: str, value: object) -> Any:
    """Return ``settings`` with ``key``, dotted, set to ``value``."""
    name, dot, rest = key.partition(".")
    return replace(
        settings, **{name: changed(getattr(settings, name), rest, value) if dot else value}
    )


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
        ("model.draft", "eagle"),
        ("model.draft", "ngram"),  # with infills, which ban tokens
        ("islands.count", 0),
        ("islands.count", -1),
        ("islands.count", 1025),
        ("islands.migrate_every", -1),
        ("islands.migrants", 0),
        ("islands.most", 0),  # fewer than islands.count
        ("islands.most", 1025),
        ("islands.spawn_below", 0.0),
        ("islands.spawn_below", 1.1),
        ("islands.spawn_below", math.nan),
        ("islands.spawn_every", 0),
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
        ("pool.embedding", "bert"),
        ("pipeline.ahead", 0),
        ("search.novelty", 0.0),
        ("search.novelty", 1.0),  # over which no cosine is
        ("search.novelty", math.nan),
        ("search.novelty_by", "bert"),
        ("search.archive", "behaviour"),
        ("islands.choice", "random"),
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
        ("search.operators_policy", "ucb"),
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
    if key.startswith("search.operators."):
        bad = changed(defaults, "search.operators", {key.rpartition(".")[2]: value, "diff": 1.0})
    else:
        bad = changed(defaults, key, value)
    with pytest.raises(UserError) as refused:
        check(bad)
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
        ("pipeline.speculate", "auto"),
        ("pipeline.speculate", "false"),
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
        ("islands.choice", "ucb"),
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
        ("search.operators_policy", "kl_ucb"),
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
    check(changed(defaults, key, value))


@pytest.mark.parametrize("key", ["candidates", "seconds", "tokens", "money"])
def test_one_limit_that_every_run_reaches_is_enough_and_none_is_not(
    defaults: RunSettings, key: str
) -> None:
    none = dict.fromkeys(("candidates", "seconds", "tokens", "money"))
    budget = replace(defaults.budget, **none, target=1.0, patience=1)
    with pytest.raises(
        UserError, match=r"budget\.candidates is None; it must be a number, or else"
    ):
        check(changed(defaults, "budget", budget))
    paid = replace(budget, prices=replace(budget.prices, generated=0.5))
    check(changed(defaults, "budget", replace(paid, **{key: 1})))


@pytest.mark.parametrize("tenths", range(11))
def test_the_shares_of_greedy_and_uniform_choice_may_add_up_to_one(
    defaults: RunSettings, tenths: int
) -> None:
    # 1 - 0.9 is a little less than 0.1: the sum is what has a bound.
    parent = replace(defaults.search.parent, p_elite=tenths / 10, p_uniform=(10 - tenths) / 10)
    check(changed(defaults, "search.parent", parent))


def test_an_unknown_operator_is_refused_with_the_valid_ones(defaults: RunSettings) -> None:
    with pytest.raises(UserError, match="'guess'; valid: infill, rewrite, diff, crossover"):
        check(changed(defaults, "search.operators", {"guess": 1.0}))


def test_drafts_are_taken_with_operators_that_ban_no_tokens(defaults: RunSettings) -> None:
    operators = {"infill": 0.0, "rewrite": 1.0, "diff": 0.0}
    settings = changed(defaults, "search.operators", operators)
    check(changed(settings, "model.draft", "ngram"))
