"""What a run is configured with, as frozen values.

Does not cover where they come from (``engine.config`` composes them from Hydra groups and the
command line) or which values are allowed (``engine.bounds``).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSettings:
    """Which model, and what the engine may use for it.

    Attributes:
        name: the preset's name.
        kind: ``vllm``, or ``mutation`` for none: see ``engine.mutation``.
        path: folder or hub id of the weights; None for the embedded SmolLM2-135M-Instruct.
        cache_dir: folder in which the embedded model is kept.
        max_model_len: the longest prompt plus completion, in tokens.
        max_tokens: the longest answer of the operators that ask for whole programs or diffs; for
            one that lists K programs, K times as many, up to half of the context.
        kv_cache_gb: memory for the prefix cache on a CPU, in GiB.
        gpu_memory_utilization: share of the GPU's memory for weights and cache.
        threads: CPU threads of the model; None for all that this process may use.
        draft: what drafts tokens for vLLM to check: ``none``, or ``ngram`` for a look-up in the
            text itself; see ``engine.inference.draft``.
    """

    name: str
    kind: str
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
    """How the parent is chosen; see ``engine.search.parents``, and there the policy's module.

    Attributes:
        policy: its name; it has the parameters of its source but for those below.
        p_elite: of ``hybrid``: how often the best candidate is taken.
        p_uniform: of ``hybrid``: how often any candidate.
        gamma: of ``hybrid`` and ``power``: exponent of the scores' weights.
        epsilon: of both: the least share of the span from the worst score to the best.
    """

    policy: str
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
        novelty: the largest cosine that a child's embedding may have with one of its island's
            programs, above 0 and below 1; None for any.
        novelty_by: what the embeddings are of: ``ngrams`` of their syntax, or the hidden states of
            the served ``model``, whose cosines are larger; see ``engine.search.novelty``.
        archive: which archive of MAP-Elites an island's parents are the elites of: ``none``, one
            over ``structure``, or over the features that the ``problem`` names; see
            ``engine.search.features``.
        failures: how many of the last failed attempts at changing the parent a prompt shows.
        parent: how the parent is chosen.
        operators: weight of each operator in the mix; at least one is above 0 that needs nothing
            but a parent.
        operators_policy: how the mix is drawn from: ``fixed``, by the weights, or ``kl_ucb``, a
            bandit over the operators whose weights are above 0; see ``engine.search.operators``.
    """

    k: int
    temperature_min: float
    temperature_max: float
    prefer_cached: float
    novelty: float | None
    novelty_by: str
    archive: str
    failures: int
    parent: ParentSettings
    operators: dict[str, float]
    operators_policy: str


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
    """Populations that evolve side by side; see ``engine.search.archipelago``.

    Attributes:
        count: how many a run begins with.
        migrate_every: iterations of an island after which its best programs join the next one,
            in a ring; 0 for never.
        migrants: how many of them.
        choice: which of those that may call next has the room: they take ``turns``, or ``ucb``,
            AdaEvolve's; see ``engine.search.parents.islands``.
        most: how many there may be at last, where further ones are opened; None for ``count``. See
            ``engine.search.spawning``, for the next two as well.
        spawn_below: one is opened while a smaller share of all children improve their islands.
        spawn_every: children that are judged between two that are opened, at least.
    """

    count: int
    migrate_every: int
    migrants: int
    choice: str
    most: int | None
    spawn_below: float
    spawn_every: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolSettings:
    """What a run starts from besides the problem's initial program; see ``engine.pool``.

    Attributes:
        sources: folders of programs, or of other runs.
        most_of_run: how many programs of a run are taken, the best.
        embedding: what programs are clustered by: ``ngrams`` of their syntax, or the hidden states
            of the served ``model``.
        mixing: d, the share of a cluster that is exchanged for good programs of others.
        elites: rho, the share of it that is not.
    """

    sources: tuple[str, ...]
    most_of_run: int
    embedding: str
    mixing: float
    elites: float


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
class PriceSettings:
    """Prices of a million tokens, all in the same currency, whichever it is.

    Attributes:
        prompt: of prompt tokens that were computed, for each child.
        cached_prompt: of those that the prefix cache served.
        generated: of tokens sampled.
    """

    prompt: float
    cached_prompt: float
    generated: float


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetSettings:
    """When a run ends: whichever comes first, counted over all its sessions; see ``engine.budget``.

    Each is None for no limit, but not all of the first four.

    Attributes:
        candidates: evaluated programs, the initial one and those of a pool not counted.
        seconds: wall seconds.
        tokens: generated tokens, those of guesses that came to nothing included.
        money: what prompts and answers cost at these prices.
        target: a score at which the run has what it wants.
        patience: candidates in a row that are no better than the best.
        prices: what tokens cost.
    """

    candidates: int | None
    seconds: float | None
    tokens: int | None
    money: float | None
    target: float | None
    patience: int | None
    prices: PriceSettings


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
    pool: PoolSettings
    pipeline: PipelineSettings
    prompts: PromptSettings
    budget: BudgetSettings
    evaluation: EvaluationSettings
    cache: CacheSettings
    runs: str
    name: str | None
    seed: int
