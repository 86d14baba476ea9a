"""What a run is configured with, as frozen values that were checked once.

Covers: the settings, their bounds and the error that names the key at fault. Does not cover where
they come from: ``engine.config`` composes them from Hydra groups and the command line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from engine.core import UserError

CACHES = ("none", "lmcache")
DRAFTS = ("none", "ngram")
OPERATORS = ("infill", "rewrite", "diff")
LAYOUTS = ("classic", "stable", "transcript")
SPECULATION = ("true", "false", "auto")
WIDTHS = ("fixed", "turboevolve", "cost_aware")
MOST_CHILDREN = 4096
MOST_ISLANDS = 1024
MOST_WORKERS = 1024
MOST_SCORES = 1 << 20
MOST_TOKENS = 1 << 24
FEWEST_SCORES = 16
"""Scores without which a cheap stage has no threshold."""
_NAME_BYTES = 200  # a file system takes 255, and the folder has a longer name while it is made


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSettings:
    """Which model, and what the engine may use for it.

    Attributes:
        name: the preset's name.
        path: folder or hub id of the weights; None for the embedded SmolLM2-135M-Instruct.
        cache_dir: folder in which the embedded model is kept.
        max_model_len: the longest prompt plus completion, in tokens.
        max_tokens: the longest answer of the operators that ask for whole programs or diffs.
        kv_cache_gb: memory for the prefix cache on a CPU, in GiB.
        gpu_memory_utilization: share of the GPU's memory for weights and cache.
        threads: CPU threads of the model; None for all that this process may use.
        draft: what drafts tokens for vLLM to check: ``none``, or ``ngram`` for a look-up in the
            text itself; see ``engine.inference.draft``.
    """

    name: str
    path: str | None
    cache_dir: str
    max_model_len: int
    max_tokens: int
    kv_cache_gb: int
    gpu_memory_utilization: float
    threads: int | None
    draft: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheSettings:
    """Where the KV of prompts outlives the process that computed it.

    Attributes:
        kind: ``none``, or ``lmcache`` for an LMCache server beside the run.
        memory_gb: the server's memory tier, in GiB; less where shared memory is short.
        disk_gb: the disk tier, in GiB, over all runs that share the folder.
        folder: of the disk tier.
        server: ``127.0.0.1:PORT`` of a server that runs already, whose tiers are its own; None to
            start one.
    """

    kind: str
    memory_gb: float
    disk_gb: float
    folder: str
    server: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ParentSettings:
    """rEVOLVE's hybrid choice of the parent; see ``engine.search.parents``."""

    p_elite: float
    p_uniform: float
    gamma: float
    epsilon: float


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchSettings:
    """How children are asked for.

    Attributes:
        k: children for each prompt.
        temperature_min: temperature of the first child; the others are spread evenly up to
        temperature_max: that of the last one.
        prefer_cached: how far from the drawn parent's score, as a share of the span of the scores,
            that of another may be that is taken because more of its prompt is cached; 0: never.
        failures: how many of the last failed attempts at changing the parent a prompt shows.
        parent: how the parent is chosen.
        operators: weight of each operator in the mix; at least one is above 0.
    """

    k: int
    temperature_min: float
    temperature_max: float
    prefer_cached: float
    failures: int
    parent: ParentSettings
    operators: dict[str, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class WidthSettings:
    """How K is chosen; see ``engine.search.width`` and ``engine.search.cost_aware``.

    Attributes:
        kind: the policy: ``fixed`` (K is ``search.k``), ``turboevolve`` or ``cost_aware``.
        k_min: the smallest K of ``cost_aware``.
        k_max: the largest.
    """

    kind: str
    k_min: int
    k_max: int


@dataclass(frozen=True, kw_only=True, slots=True)
class IslandSettings:
    """Populations that evolve side by side; see ``engine.search.search``.

    Attributes:
        count: how many.
        migrate_every: iterations of an island after which its best programs join the next one,
            in a ring; 0 for never.
        migrants: how many of them.
    """

    count: int
    migrate_every: int
    migrants: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PipelineSettings:
    """What may go on at the same time; see ``engine.loop``.

    Attributes:
        overlap: whether islands decode while others' candidates are evaluated; if not, one call
            is generated, then its candidates are evaluated, then the next call is asked for.
        speculate: whether an island's next call begins before the verdicts that its parent depends
            on: ``true``, ``false``, or ``auto`` for as long as that gains more than it wastes.
        ahead: the most calls of an island that may have begun so at once.
        children: the most at the model; None for as many as vLLM runs at once.
        candidates: the most at the evaluators, above which no call is asked for; None for a number
            that follows from the evaluators'.
        adaptive: whether both limits follow what is waiting, and memory, up to these numbers.
        end_early: whether a child is ended once its program is complete, or can't become one.
    """

    overlap: bool
    speculate: str
    ahead: int
    children: int | None
    candidates: int | None
    adaptive: bool
    end_early: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptSettings:
    """What prompts show, and in which order.

    Attributes:
        layout: the order of a prompt's blocks; see ``engine.prompts.layouts``.
        history_tokens: tokens of the other programs that are shown; 0 for none. Where the history
            grows at its end, what is left of it after it was compacted.
        growth_tokens: tokens by which it then grows before it is compacted again; see
            ``engine.search.window`` for how much pays.
        name_parent: name a parent that stands in the history instead of repeating it.
        align: fill prompts up to a block of the prefix cache, but for transcripts; see
            ``engine.prompts.alignment``.
    """

    layout: str
    history_tokens: int
    growth_tokens: int
    name_parent: bool
    align: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetSettings:
    """When a run ends: whichever comes first, counted over all its sessions.

    Attributes:
        candidates: evaluated programs, the initial one not counted.
        seconds: wall seconds; None for no limit.
    """

    candidates: int
    seconds: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CascadeSettings:
    """How a problem's cheap stages screen candidates; see ``engine.evaluation.screen``.

    Attributes:
        keep: share of the candidates at a stage that goes on.
        audit: share of the others that is fully evaluated anyway.
        correlation_min: rank correlation with the full score below which a stage is switched off.
        window: how many candidates back the threshold looks; the correlation looks at this many
            fully evaluated ones times ``engine.evaluation.screen.WINDOWS``, once for each window.
    """

    keep: float
    audit: float
    correlation_min: float
    window: int


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationSettings:
    """How candidates are evaluated.

    Attributes:
        workers: processes that run candidates.
        strict: whether a wall of the sandbox that can't be had here is an error.
        cascade: how cheap stages screen candidates.
    """

    workers: int
    strict: bool
    cascade: CascadeSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSettings:
    """Everything that one run is configured with.

    Attributes:
        problem: folder of the problem.
        data: file or folder with the user's own data, for a problem that reads any; None for the
            data that come with the problem.
        runs: folder under which each run has its own.
        name: of the run's folder in it, one part of a path; None for a name made of problem,
            model, seed and time.
        seed: from which all random choices of the run derive.
    """

    problem: str
    data: str | None
    model: ModelSettings
    search: SearchSettings
    width: WidthSettings
    islands: IslandSettings
    pipeline: PipelineSettings
    prompts: PromptSettings
    budget: BudgetSettings
    evaluation: EvaluationSettings
    cache: CacheSettings
    runs: str
    name: str | None
    seed: int


def check(settings: RunSettings) -> None:
    """Check every bound.

    Raises:
        UserError: names the key, its value and what it must be.
    """
    _check_search(settings.search)
    _check_width(settings.width)
    _check_islands(settings.islands)
    _check_pipeline(settings.pipeline)
    _check_prompts(settings.prompts)
    _check_budget(settings.budget)
    _check_evaluation(settings.evaluation)
    _check_model(settings.model)
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
    _require(search.failures >= 0, "search.failures", search.failures, "0 or more")
    _check_parent(search.parent)
    _check_operators(search.operators)


def _check_width(width: WidthSettings) -> None:
    _require(width.kind in WIDTHS, "width.kind", width.kind, f"one of {', '.join(WIDTHS)}")
    _require(width.k_min >= 1, "width.k_min", width.k_min, "1 or more")
    _require(
        width.k_min <= width.k_max <= MOST_CHILDREN,
        "width.k_max",
        width.k_max,
        f"from width.k_min ({width.k_min}) to {MOST_CHILDREN}",
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
    _require(budget.candidates >= 0, "budget.candidates", budget.candidates, "0 or more")
    _require(
        budget.seconds is None or 0 <= budget.seconds < math.inf,
        "budget.seconds",
        budget.seconds,
        "0 or more and finite, or null for no limit",
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


def _require(holds: bool, key: str, value: object, must_be: str) -> None:
    if not holds:
        raise UserError(f"{key} is {value!r}; it must be {must_be}")
