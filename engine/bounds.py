"""The bounds of the settings: what each may be, and the error that names the key at fault.

Does not cover the types of the values: ``engine.config``.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping

from engine.core import UserError
from engine.settings import (
    BudgetSettings,
    CacheSettings,
    EvaluationSettings,
    IslandSettings,
    ModelSettings,
    ParentSettings,
    PipelineSettings,
    PoolSettings,
    PromptSettings,
    RunSettings,
    SearchSettings,
    WidthSettings,
)

ARCHIVES = ("none", "structure", "problem")
CACHES = ("none", "lmcache")
DRAFTS = ("none", "ngram")
MODELS = ("vllm", "mutation")
OPERATORS = ("infill", "rewrite", "diff", "crossover", "repair", "verbalized", "mutation")
OPERATORS_POLICIES = ("fixed", "kl_ucb")
PARENTS = ("hybrid", "power", "rank", "shinka", "adaevolve", "puct", "thompson")
CHOICES = ("turns", "ucb")
EMBEDDINGS = ("ngrams", "model")
LAYOUTS = ("classic", "stable", "transcript")
SPECULATION = ("true", "false", "auto")
WIDTHS = ("fixed", "turboevolve", "cost_aware")
MOST_CHILDREN = 4096
MOST_ISLANDS = 1024
MOST_WORKERS = 1024
MOST_SCORES = 1 << 20
MOST_TOKENS = 1 << 24
MOST_COUNT = 1 << 63
"""Above a budget's counts: their shares are floats, and far larger ones fit none."""
FEWEST_SCORES = 16
"""Scores without which a cheap stage has no threshold."""
_NAME_BYTES = 200  # a file system takes 255, and the folder has a longer name while it is made


def check(settings: RunSettings) -> None:
    """Check every bound.

    Raises:
        UserError: names the key, its value and what it must be.
    """
    _check_search(settings.search)
    _check_width(settings.width)
    _check_islands(settings.islands)
    _check_pool(settings.pool)
    _check_pipeline(settings.pipeline)
    _check_prompts(settings.prompts)
    _check_budget(settings.budget)
    _check_evaluation(settings.evaluation)
    _check_model(settings.model)
    _check_kind(settings)
    _check_width_and_operators(settings)
    _check_draft(settings)
    _check_cache(settings.cache)
    _require(settings.data != "", "data", settings.data, "a file or a folder, or null")
    _require(settings.runs != "", "runs", settings.runs, "a folder")
    _require(
        settings.name is None or _is_folder_name(settings.name),
        "name",
        settings.name,
        f"one folder's name (printable, without /, at most {_NAME_BYTES} bytes) or null",
    )
    _require(0 <= settings.seed < 2**63, "seed", settings.seed, "between 0 and 2^63 - 1")


def _check_search(search: SearchSettings) -> None:
    _require(search.k >= 1, "search.k", search.k, "1 or more")
    _require(search.k <= MOST_CHILDREN, "search.k", search.k, f"at most {MOST_CHILDREN}")
    _require(
        0 < search.temperature_min < math.inf,
        "search.temperature_min",
        search.temperature_min,
        "above 0 and finite",
    )
    _require(
        search.temperature_min <= search.temperature_max < math.inf,
        "search.temperature_max",
        search.temperature_max,
        f"finite and at least search.temperature_min ({search.temperature_min})",
    )
    _require(
        0 <= search.prefer_cached <= 1, "search.prefer_cached", search.prefer_cached, "from 0 to 1"
    )
    novelty = search.novelty
    _require(
        novelty is None or 0 < novelty < 1,
        "search.novelty",
        novelty,
        "above 0 and below 1, or null for no limit",
    )
    known = f"one of {', '.join(EMBEDDINGS)}"
    _require(search.novelty_by in EMBEDDINGS, "search.novelty_by", search.novelty_by, known)
    known = f"one of {', '.join(ARCHIVES)}"
    _require(search.archive in ARCHIVES, "search.archive", search.archive, known)
    _require(search.failures >= 0, "search.failures", search.failures, "0 or more")
    _check_parent(search.parent)
    _check_operators(search.operators)
    policy, known = search.operators_policy, " or ".join(OPERATORS_POLICIES)
    _require(policy in OPERATORS_POLICIES, "search.operators_policy", policy, known)


def _check_width(width: WidthSettings) -> None:
    _require(width.kind in WIDTHS, "width.kind", width.kind, f"one of {', '.join(WIDTHS)}")
    _require(width.k_min >= 1, "width.k_min", width.k_min, "1 or more")
    _require(
        width.k_min <= width.k_max <= MOST_CHILDREN,
        "width.k_max",
        width.k_max,
        f"from width.k_min ({width.k_min}) to {MOST_CHILDREN}",
    )


def _check_width_and_operators(settings: RunSettings) -> None:
    _require(
        settings.width.kind != "cost_aware" or not settings.search.operators.get("verbalized"),
        "width.kind",
        settings.width.kind,
        "fixed or turboevolve with operator verbalized: what a call costs is learned from children "
        "that have an answer each",
    )


def _check_islands(islands: IslandSettings) -> None:
    for key, least, most in (
        ("count", 1, MOST_ISLANDS),
        ("migrate_every", 0, math.inf),
        ("migrants", 1, math.inf),
    ):
        value = getattr(islands, key)
        bounds = f"{least} or more" if most == math.inf else f"from {least} to {most}"
        _require(least <= value <= most, f"islands.{key}", value, bounds)
    _require(islands.choice in CHOICES, "islands.choice", islands.choice, " or ".join(CHOICES))
    limit = islands.most
    _require(
        limit is None or islands.count <= limit <= MOST_ISLANDS,
        "islands.most",
        limit,
        f"from islands.count ({islands.count}) to {MOST_ISLANDS}, or null for as many",
    )
    below = islands.spawn_below
    _require(0 < below <= 1, "islands.spawn_below", below, "above 0 and at most 1")
    _require(islands.spawn_every >= 1, "islands.spawn_every", islands.spawn_every, "1 or more")


def _check_pool(pool: PoolSettings) -> None:
    _require(pool.most_of_run >= 1, "pool.most_of_run", pool.most_of_run, "1 or more")
    known = f"one of {', '.join(EMBEDDINGS)}"
    _require(pool.embedding in EMBEDDINGS, "pool.embedding", pool.embedding, known)
    for key in ("mixing", "elites"):
        value = getattr(pool, key)
        _require(0 <= value <= 1, f"pool.{key}", value, "from 0 to 1")


def _check_pipeline(pipeline: PipelineSettings) -> None:
    speculate, known = pipeline.speculate, ", ".join(SPECULATION)
    _require(speculate in SPECULATION, "pipeline.speculate", speculate, f"one of {known}")
    _require(pipeline.ahead >= 1, "pipeline.ahead", pipeline.ahead, "1 or more")
    for key in ("children", "candidates"):
        limit = getattr(pipeline, key)
        _require(
            limit is None or limit >= 1, f"pipeline.{key}", limit, "1 or more, or null for no limit"
        )


def _check_prompts(prompts: PromptSettings) -> None:
    layout, known = prompts.layout, ", ".join(LAYOUTS)
    _require(layout in LAYOUTS, "prompts.layout", layout, f"one of {known}")
    for key in ("history_tokens", "growth_tokens"):
        tokens = getattr(prompts, key)
        _require(0 <= tokens <= MOST_TOKENS, f"prompts.{key}", tokens, f"0 to {MOST_TOKENS}")


def _check_budget(budget: BudgetSettings) -> None:
    ends = ("candidates", "seconds", "tokens", "money")
    for key in ends:
        limit, is_count = getattr(budget, key), key in ("candidates", "tokens")
        _require(
            limit is None or 0 <= limit < (MOST_COUNT if is_count else math.inf),
            f"budget.{key}",
            limit,
            f"0 or more and {'below 2^63' if is_count else 'finite'}, or null for no limit",
        )
    _require(
        any(getattr(budget, key) is not None for key in ends),
        "budget.candidates",
        budget.candidates,
        "a number, or else one of budget.seconds, budget.tokens and budget.money",
    )
    _require(
        budget.target is None or math.isfinite(budget.target),
        "budget.target",
        budget.target,
        "finite, or null for none",
    )
    _require(
        budget.patience is None or 1 <= budget.patience < MOST_COUNT,
        "budget.patience",
        budget.patience,
        "1 or more and below 2^63, or null for no limit",
    )
    _check_prices(budget)


def _check_prices(budget: BudgetSettings) -> None:
    prices = dataclasses.asdict(budget.prices)
    for name, price in prices.items():
        _require(0 <= price < math.inf, f"budget.prices.{name}", price, "0 or more and finite")
    _require(
        budget.money is None or any(prices.values()),
        "budget.money",
        budget.money,
        "null as long as all budget.prices are 0",
    )


def _check_evaluation(evaluation: EvaluationSettings) -> None:
    workers, cascade = evaluation.workers, evaluation.cascade
    _require(workers >= 1, "evaluation.workers", workers, "1 or more")
    _require(workers <= MOST_WORKERS, "evaluation.workers", workers, f"at most {MOST_WORKERS}")
    key = "evaluation.cascade"
    _require(0 < cascade.keep <= 1, f"{key}.keep", cascade.keep, "above 0 and at most 1")
    _require(0.001 <= cascade.audit <= 1, f"{key}.audit", cascade.audit, "from 0.001 to 1")
    _require(
        -1 <= cascade.correlation_min <= 1,
        f"{key}.correlation_min",
        cascade.correlation_min,
        "from -1 to 1",
    )
    _require(
        FEWEST_SCORES <= cascade.window <= MOST_SCORES,
        f"{key}.window",
        cascade.window,
        f"from {FEWEST_SCORES} to {MOST_SCORES}",
    )


def _check_model(model: ModelSettings) -> None:
    _require(model.path != "", "model.path", model.path, "a folder or a hub id, or null")
    _require(model.max_model_len >= 256, "model.max_model_len", model.max_model_len, "256 or more")
    _require(
        1 <= model.max_tokens < model.max_model_len,
        "model.max_tokens",
        model.max_tokens,
        f"1 or more and below model.max_model_len ({model.max_model_len})",
    )
    _require(model.kv_cache_gb >= 1, "model.kv_cache_gb", model.kv_cache_gb, "1 or more")
    _require(
        0 < model.gpu_memory_utilization <= 1,
        "model.gpu_memory_utilization",
        model.gpu_memory_utilization,
        "above 0 and at most 1",
    )
    _require(
        model.threads is None or model.threads >= 1,
        "model.threads",
        model.threads,
        "1 or more, or null for all cores",
    )


def _check_kind(settings: RunSettings) -> None:
    """Check that the operators are those that the kind of model can follow."""
    kind = settings.model.kind
    _require(kind in MODELS, "model.kind", kind, f"{' or '.join(MODELS)}; give model=NAME")
    is_mutation = kind == "mutation"
    for name, weight in settings.search.operators.items():
        _require(
            not weight or (name == "mutation") is is_mutation,
            f"search.operators.{name}",
            weight,
            "0 with model=mutation, which only knows operator mutation"
            if is_mutation
            else "0 with a language model; give model=mutation",
        )
    cache = settings.cache.kind
    must_be = "none with model=mutation, which computes no KV"
    _require(not is_mutation or cache == "none", "cache.kind", cache, must_be)
    must_be = "ngrams with model=mutation, which has no hidden states"
    for key, embedding in (
        ("pool.embedding", settings.pool.embedding),
        ("search.novelty_by", settings.search.novelty_by),
    ):
        _require(not is_mutation or embedding == "ngrams", key, embedding, must_be)
    draft = settings.model.draft
    must_be = "none with model=mutation, which samples no tokens"
    _require(not is_mutation or draft == "none", "model.draft", draft, must_be)
    tolerance = settings.search.prefer_cached
    must_be = "0 with model=mutation, which has no prefix cache"
    _require(not is_mutation or not tolerance, "search.prefer_cached", tolerance, must_be)


def _check_draft(settings: RunSettings) -> None:
    draft = settings.model.draft
    _require(draft in DRAFTS, "model.draft", draft, " or ".join(DRAFTS))
    _require(
        draft == "none" or not settings.search.operators.get("infill"),
        "model.draft",
        draft,
        "none with operator infill, which bans tokens: vLLM can't ban them in drafts; or give "
        "search.operators.infill=0",
    )


def _check_cache(cache: CacheSettings) -> None:
    kinds = " or ".join(CACHES)
    _require(cache.kind in CACHES, "cache.kind", cache.kind, f"{kinds}: give cache={CACHES[-1]}")
    _require(
        0.1 <= cache.memory_gb < math.inf,
        "cache.memory_gb",
        cache.memory_gb,
        "0.1 or more and finite",
    )
    _require(
        0.1 <= cache.disk_gb < math.inf, "cache.disk_gb", cache.disk_gb, "0.1 or more and finite"
    )
    _require(
        cache.server is None or _is_loopback(cache.server),
        "cache.server",
        cache.server,
        "127.0.0.1:PORT of a server on this machine, or null to start one",
    )


def _is_loopback(server: str) -> bool:
    host, _, port = server.partition(":")
    return (
        host == "127.0.0.1"
        and re.fullmatch("[1-9][0-9]{0,4}", port) is not None
        and int(port) < 1 << 16
    )


def _is_folder_name(name: str) -> bool:
    return (
        name not in ("", ".", "..")
        and "/" not in name
        and name.isprintable()
        and len(name.encode()) <= _NAME_BYTES
    )


def _check_parent(parent: ParentSettings) -> None:
    known = f"one of {', '.join(PARENTS)}"
    _require(parent.policy in PARENTS, "search.parent.policy", parent.policy, known)
    _require(0 <= parent.p_elite <= 1, "search.parent.p_elite", parent.p_elite, "from 0 to 1")
    _require(
        parent.p_uniform >= 0 and parent.p_elite + parent.p_uniform <= 1,
        "search.parent.p_uniform",
        parent.p_uniform,
        "from 0 to 1 - search.parent.p_elite",
    )
    _require(
        0 <= parent.gamma < math.inf, "search.parent.gamma", parent.gamma, "0 or more and finite"
    )
    _require(
        0 < parent.epsilon <= 1, "search.parent.epsilon", parent.epsilon, "above 0 and at most 1"
    )


def _check_operators(operators: Mapping[str, float]) -> None:
    unknown = sorted(set(operators) - set(OPERATORS))
    if unknown:
        raise UserError(
            f"search.operators has no operator {unknown[0]!r}; valid: {', '.join(OPERATORS)}"
        )
    for name, weight in operators.items():
        _require(0 <= weight < math.inf, f"search.operators.{name}", weight, "0 or more and finite")
    _require(
        0 < sum(operators.values()) < math.inf,
        "search.operators",
        dict(operators),
        "a mix with at least one weight above 0, and a finite sum",
    )
    _require(
        any(weight for name, weight in operators.items() if name not in ("crossover", "repair")),
        "search.operators",
        dict(operators),
        "a mix with one that needs no second program: crossover and repair do, and can't begin",
    )


def _require(holds: bool, key: str, value: object, must_be: str) -> None:
    if not holds:
        raise UserError(f"{key} is {value!r}; it must be {must_be}")
