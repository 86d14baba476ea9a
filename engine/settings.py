"""What a run is configured with, as frozen values that are checked where they are made.

Does not cover where they come from: ``engine.config`` composes them from Hydra groups and the
command line.
"""

import math
import re
from typing import Annotated, Any, Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, model_validator

from engine.core import UserError
from engine.prompts import OPERATORS
from engine.search.mixes import MIXES, MixSettings
from engine.search.novelty import NOVELTY, NoveltySettings
from engine.search.parents import PARENTS, ParentSettings
from engine.search.topologies import TOPOLOGIES, TopologySettings
from engine.search.widths import WIDTHS, WidthSettings
from engine.section import Flag, Number, Section, Share, Whole, in_a_line, require, section

Dtype = Literal["auto", "bfloat16", "float32"]
Archive = Literal["none", "structure", "problem"]
Layout = Literal["classic", "stable", "transcript"]
SharedPrefix = Literal["off", "auto"]
Implementer = Literal["model", "endpoint"]
NEED_MORE = ("crossover", "repair")
"""The operators that need a second program, with which no run can begin."""
ADVISED = ("rewrite", "diff")
"""The operators that carry out an advisor's experiments."""
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

Count = Annotated[Whole, Field(ge=1)]
Text = Annotated[str, Field(min_length=1)]
Tokens = Annotated[Whole, Field(ge=0, le=MOST_TOKENS)]
Gigabytes = Annotated[Number, Field(ge=0.1)]
Price = Annotated[Number, Field(ge=0)]
Weight = Annotated[Number, Field(ge=0)]


@section
class ModelSettings(Section):
    """Which model, and what the engine may use for it.

    Attributes:
        name: the preset's name.
        kind: ``vllm``, or ``mutation`` for none: see ``engine.mutation``.
        path: folder or hub id of the weights; None for the embedded SmolLM2-135M-Instruct.
        cache_dir: folder in which the embedded model is kept, and what was measured of models.
        dtype: the format of the model's numbers; ``auto`` for the faster one on a CPU (see
            ``engine.inference.number_format``), and on a GPU for vLLM's choice.
        max_model_len: the longest prompt plus completion, in tokens.
        max_tokens: the longest answer of the operators that ask for whole programs or diffs; for
            one that lists K programs, K times as many, up to half of the context.
        max_num_seqs: children that vLLM runs at once; None for what suits the machine and model,
            as for the next two: see ``engine.inference.limits``.
        max_num_batched_tokens: prompt and other tokens of one step.
        block_size: tokens of a block of the prefix cache.
        top_p: share of the probability that the likeliest tokens have which may be drawn; None, as
            for the next one, for what the model's ``generation_config.json`` has, or for all.
        top_k: how many of the likeliest tokens may be drawn; 0 for all.
        min_p: the least probability of a token that may be drawn, as a share of the likeliest's.
        thinking: whether a model that can think before it answers does.
        kv_cache_gb: memory for the prefix cache on a CPU, in GiB.
        gpu_memory_utilization: share of the GPU's memory for weights and cache.
        threads: CPU threads of the model; None for all that this process may use, or for one
            beside a GPU.
        shared_prefix: whether a step reads what siblings share once for all of them: ``off``, or
            ``auto`` for Hopper GPUs where enough is shared; see ``engine.inference.shared_prefix``.
        engine: arguments of vLLM's engine, by name, that take the place of this engine's choice;
            see ``engine.inference.engine_options``.
    """

    name: str
    kind: Literal["vllm", "mutation"]
    path: Text | None
    cache_dir: str
    dtype: Dtype
    max_model_len: Whole = Field(ge=256)
    max_tokens: Count
    max_num_seqs: Count | None
    max_num_batched_tokens: Count | None
    block_size: Count | None
    top_p: Annotated[Number, Field(gt=0, le=1)] | None
    top_k: Annotated[Whole, Field(ge=0)] | None
    min_p: Share
    thinking: Flag
    kv_cache_gb: Count
    gpu_memory_utilization: Number = Field(gt=0, le=1)
    threads: Count | None
    shared_prefix: SharedPrefix
    engine: dict[str, Any]

    @model_validator(mode="after")
    def _leaves_room_for_a_prompt(self) -> Self:
        length = self.max_model_len
        must_be = f"below model.max_model_len ({length})"
        require(self.max_tokens < length, "max_tokens", self.max_tokens, must_be)
        return self


@section
class CacheSettings(Section):
    """Where the KV of prompts outlives the process that computed it.

    Attributes:
        kind: ``none``, or ``lmcache`` for an LMCache server beside the run.
        memory_gb: the server's memory tier, in GiB; less where shared memory is short.
        disk_gb: the disk tier, in GiB, over all runs that share the folder.
        folder: of the disk tier.
        server: ``127.0.0.1:PORT`` of a server that runs already, whose tiers are its own; None to
            start one.
    """

    kind: Literal["none", "lmcache"]
    memory_gb: Gigabytes
    disk_gb: Gigabytes
    folder: str
    server: str | None

    @model_validator(mode="after")
    def _server_is_on_this_machine(self) -> Self:
        must_be = "127.0.0.1:PORT of a server on this machine, or null to start one"
        require(self.server is None or _is_loopback(self.server), "server", self.server, must_be)
        return self


@section
class SearchSettings(Section):
    """How children are asked for.

    Attributes:
        k: children for each prompt.
        temperature_min: temperature of the first child; the others are spread evenly up to
        temperature_max: that of the last one.
        novelty: which children are refused as near-copies; None for none.
        archive: which archive of MAP-Elites an island's parents are the elites of: ``none``, one
            over ``structure``, or over the features that the ``problem`` names; see
            ``engine.search.features``.
        failures: how many of the last failed attempts at changing the parent a prompt shows.
        parent: how the parent is chosen.
        operators: weight of each operator in the mix; at least one is above 0 that needs nothing
            but a parent.
        mix: how an operator is drawn from those whose weights are above 0.
    """

    k: Whole = Field(ge=1, le=MOST_CHILDREN)
    temperature_min: Number = Field(gt=0)
    temperature_max: Number
    novelty: Annotated[NoveltySettings | None, BeforeValidator(NOVELTY.read)]
    archive: Archive
    failures: Whole = Field(ge=0)
    parent: Annotated[ParentSettings, BeforeValidator(PARENTS.read)]
    operators: dict[str, Weight]
    mix: Annotated[MixSettings, BeforeValidator(MIXES.read)]

    @model_validator(mode="after")
    def _can_begin(self) -> Self:
        least, most = self.temperature_min, self.temperature_max
        must_be = f"at least search.temperature_min ({least})"
        require(least <= most, "temperature_max", most, must_be)
        weights = self.operators
        for name in weights:
            OPERATORS.find(name, given=f"operators.{name} is no operator")
        must_be = "a mix with at least one weight above 0, and a finite sum"
        require(0 < sum(weights.values()) < math.inf, "operators", weights, must_be)
        alone = any(weight for name, weight in weights.items() if name not in NEED_MORE)
        must_be = f"a mix with one that needs no second program, as {' and '.join(NEED_MORE)} do"
        require(alone, "operators", weights, must_be)
        return self


@section
class IslandSettings(Section):
    """Populations that evolve side by side; see ``engine.search.island``.

    Attributes:
        count: how many there are.
        migrate_every: iterations of an island after which its best programs join its neighbours;
            0 for never.
        migrants: how many of them.
        topology: which islands are neighbours.
    """

    count: Whole = Field(ge=1, le=MOST_ISLANDS)
    migrate_every: Whole = Field(ge=0)
    migrants: Count
    topology: Annotated[TopologySettings, BeforeValidator(TOPOLOGIES.read)]


@section
class PoolSettings(Section):
    """What a run starts from besides the problem's initial program; see ``engine.pool``.

    Attributes:
        sources: folders of programs, or of other runs.
        most_of_run: how many programs of a run are taken, the best.
        mixing: d, the share of a cluster that is exchanged for good programs of others.
        elites: rho, the share of it that is not.
    """

    sources: tuple[str, ...]
    most_of_run: Count
    mixing: Share
    elites: Share


@section
class PipelineSettings(Section):
    """What may go on at the same time; see ``engine.loop``.

    Attributes:
        overlap: whether islands decode while others' candidates are evaluated; if not, one call
            is generated, then its candidates are evaluated, then the next call is asked for.
        speculate: whether an island's next call begins before the verdicts that its parent depends
            on.
        ahead: the most calls of an island that may have begun so at once.
        children: the most at the model; None for as many as vLLM runs at once.
        candidates: the most at the evaluators, above which no call is asked for; None for a number
            that follows from the evaluators'.
        adaptive: whether both limits follow what is waiting, and memory, up to these numbers.
        end_early: whether a child is ended once its program is complete.
    """

    overlap: Flag
    speculate: Flag
    ahead: Count
    children: Count | None
    candidates: Count | None
    adaptive: Flag
    end_early: Flag


@section
class PromptSettings(Section):
    """What prompts show, and in which order.

    Attributes:
        layout: the order of a prompt's blocks; see ``engine.prompts.layouts``.
        history_tokens: tokens of the other programs that are shown; 0 for none. Where the history
            grows at its end, what is left of it after it was compacted.
        growth_tokens: tokens by which it then grows before it is compacted again; see
            ``engine.search.window`` for how much pays.
        align: fill prompts up to a block of the prefix cache, but for transcripts; see
            ``engine.prompts.layouts``.
    """

    layout: Layout
    history_tokens: Tokens
    growth_tokens: Tokens
    align: Flag


@section
class PriceSettings(Section):
    """Prices of a million tokens, all in the same currency, whichever it is.

    Attributes:
        prompt: of prompt tokens that were computed, for each child.
        cached_prompt: of those that the prefix cache served.
        generated: of tokens sampled.
    """

    prompt: Price
    cached_prompt: Price
    generated: Price


@section
class BudgetSettings(Section):
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

    candidates: Annotated[Whole, Field(ge=0, lt=MOST_COUNT)] | None
    seconds: Annotated[Number, Field(ge=0)] | None
    tokens: Annotated[Whole, Field(ge=0, lt=MOST_COUNT)] | None
    money: Annotated[Number, Field(ge=0)] | None
    target: Number | None
    patience: Annotated[Whole, Field(ge=1, lt=MOST_COUNT)] | None
    prices: PriceSettings

    @model_validator(mode="after")
    def _every_run_ends(self) -> Self:
        ends = (self.candidates, self.seconds, self.tokens, self.money)
        must_be = "a number, or else one of budget.seconds, budget.tokens and budget.money"
        require(any(each is not None for each in ends), "candidates", None, must_be)
        prices = self.prices
        has_price = prices.prompt or prices.cached_prompt or prices.generated
        must_be = "null as long as all budget.prices are 0"
        require(self.money is None or bool(has_price), "money", self.money, must_be)
        return self


@section
class CascadeSettings(Section):
    """How a problem's cheap stages screen candidates; see ``engine.evaluation.screen``.

    Attributes:
        keep: share of the candidates at a stage that goes on.
        audit: share of the others that is fully evaluated anyway.
        correlation_min: rank correlation with the full score below which a stage is switched off.
        window: how many candidates back the threshold looks; the correlation looks at this many
            fully evaluated ones times ``engine.evaluation.screen.WINDOWS``, once for each window.
    """

    keep: Number = Field(gt=0, le=1)
    audit: Number = Field(ge=0.001, le=1)
    correlation_min: Number = Field(ge=-1, le=1)
    window: Whole = Field(ge=FEWEST_SCORES, le=MOST_SCORES)


@section
class EvaluationSettings(Section):
    """How candidates are evaluated.

    Attributes:
        workers: processes that run candidates.
        strict: whether a wall of the sandbox that can't be had here is an error.
        cascade: how cheap stages screen candidates.
    """

    workers: Whole = Field(ge=1, le=MOST_WORKERS)
    strict: Flag
    cascade: CascadeSettings


@section
class LearningSettings(Section):
    """Whether and how the model learns from the run's children; see ``engine.learning``.

    Attributes:
        method: ``none``, or what children are worth to each other: see
            ``engine.learning.advantages``; ``expert`` imitates the new valid ones.
        adapter: ``last_block`` changes what the last block asks, puts out and makes of it, and so
            no key and no value; ``full`` changes all linear layers.
        reward: ``target`` for Eq. 5 of PACEvolve++, ``rank`` for the place among the siblings; see
            ``engine.learning.rewards``.
        rank: of the adapter.
        groups: calls whose children make up an update.
        learning_rate: of AdamW.
        weight_decay: of AdamW, on the adapter: the pull to the model itself.
        passes: over the groups of an update, each with a gradient step.
        clip_low: by how much less likely a token may become before its gradient stops.
        clip_high: by how much likelier.
        most_weight: the largest importance weight of a token.
        max_lag: versions that a group may lag behind; older ones are left out.
        best_of: k, the number of children of which the best one counts.
        entropic_kl: gamma, the divergence in nats of the entropic weights from uniform ones.
        most_kl: mean divergence of a token from the model itself, in nats, above which an update is
            rolled back.
        memory_gb: memory of the GPU that the trainer may have, in GiB; unused on a CPU.
    """

    method: Literal[
        "none", "grpo", "entropic", "max_at_k", "phase_adaptive", "mean_baseline", "expert"
    ]
    adapter: Literal["last_block", "full"]
    reward: Literal["target", "rank"]
    rank: Literal[8, 16, 32, 64, 128, 256]
    groups: Count
    learning_rate: Number = Field(gt=0)
    weight_decay: Number = Field(ge=0)
    passes: Count
    clip_low: Number = Field(gt=0, lt=1)
    clip_high: Number = Field(gt=0)
    most_weight: Number = Field(ge=1)
    max_lag: Whole = Field(ge=0)
    best_of: Whole = Field(ge=2)
    entropic_kl: Number = Field(gt=0)
    most_kl: Number = Field(gt=0)
    memory_gb: Gigabytes


@section
class EndpointSettings(Section):
    """Who writes the programs where ``advisor.implementer`` is ``endpoint``.

    Task, programs, ideas and experiments are sent there. See ``engine.advisor.endpoint``.

    Attributes:
        url: of an OpenAI-compatible service, to which ``/chat/completions`` is added.
        model: the name that the service has for the model.
        key_env: name of the environment variable that holds the key; None for no key.
        seconds: after which an answer is given up.
        at_once: the most requests at a time.
    """

    url: Text | None
    model: Text | None
    key_env: Text | None
    seconds: Number = Field(gt=0, le=86400)
    at_once: Count

    @model_validator(mode="after")
    def _key_stays_secret(self) -> Self:
        if self.url is None:
            return self
        parts = _split(self.url)
        here = parts is not None and parts.hostname in ("127.0.0.1", "::1", "localhost")
        must_be = "an address as https://HOST/v1, without a name, a password or a query"
        is_plain = parts is not None and not (parts.username or parts.query or parts.fragment)
        require(is_plain, "url", self.url, must_be)
        safe = here or self.key_env is None or (parts is not None and parts.scheme == "https")
        must_be = "https where a key is sent to another machine"
        require(safe, "url", self.url, must_be)
        is_name = self.key_env is None or re.fullmatch(r"[A-Za-z_]\w*", self.key_env) is not None
        must_be = "the name of an environment variable, not the key itself"
        require(is_name, "key_env", "***", must_be)
        return self


@section
class AdvisorSettings(Section):
    """Whether an advisor decides what each child tries; see ``engine.advisor``.

    Attributes:
        enabled: whether it does.
        implementer: who writes the program: the run's own ``model``, without its adapter, or an
            ``endpoint``.
        answer_tokens: of the longest answer of the advisor.
        repository_tokens: of the ideas so far that the advisor is shown, with what came of them.
        endpoint: the service, for the implementer of that name.
    """

    enabled: Flag
    implementer: Implementer
    answer_tokens: Whole = Field(ge=128, le=MOST_TOKENS)
    repository_tokens: Tokens
    endpoint: EndpointSettings

    @model_validator(mode="after")
    def _has_its_endpoint(self) -> Self:
        for key in ("url", "model"):
            value = getattr(self.endpoint, key)
            must_be = "given with advisor.implementer=endpoint"
            is_there = self.implementer == "model" or value is not None
            require(is_there, f"endpoint.{key}", value, must_be)
        return self


@section
class RunSettings(Section):
    """Everything that one run is configured with.

    Attributes:
        problem: folder of the problem.
        data: file or folder with the user's own data, for a problem that reads any; None for the
            data that come with the problem.
        metric: the one that is the score, for a problem of another system's; None for
            ``combined_score``.
        runs: folder under which each run has its own.
        name: of the run's folder in it, one part of a path; None for a name made of problem,
            model, seed and time.
        seed: from which all random choices of the run derive.
    """

    problem: str
    data: Text | None
    metric: Text | None
    model: ModelSettings
    search: SearchSettings
    width: Annotated[WidthSettings, BeforeValidator(WIDTHS.read)]
    islands: IslandSettings
    pool: PoolSettings
    pipeline: PipelineSettings
    prompts: PromptSettings
    budget: BudgetSettings
    evaluation: EvaluationSettings
    cache: CacheSettings
    learning: LearningSettings
    advisor: AdvisorSettings
    runs: Text
    name: str | None
    seed: Whole = Field(ge=0, lt=2**63)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        must_be = f"one folder's name (printable, without /, at most {_NAME_BYTES} bytes) or null"
        require(self.name is None or _is_folder_name(self.name), "name", self.name, must_be)
        is_mutation, operators = self.model.kind == "mutation", self.search.operators
        for name, weight in operators.items():
            must_be = (
                "0 with model=mutation, which only knows operator mutation"
                if is_mutation
                else "0 with a language model; give model=mutation"
            )
            fits = not weight or (name == "mutation") is is_mutation
            require(fits, f"search.operators.{name}", weight, must_be)
        cache, engine = self.cache.kind, self.model.engine
        must_be = "none with model=mutation, which computes no KV"
        require(not is_mutation or cache == "none", "cache.kind", cache, must_be)
        method = self.learning.method
        must_be = "none with model=mutation, which has nothing to train"
        require(not is_mutation or method == "none", "learning.method", method, must_be)
        lists = operators.get("verbalized")
        must_be = "0 while the model learns: children of one answer are no group"
        fits = method == "none" or not lists
        require(fits, "search.operators.verbalized", lists, must_be)
        for name, everything in (("top_p", 1.0), ("top_k", 0), ("min_p", 0.0)):
            given = getattr(self.model, name)
            must_be = f"{everything:g} while the model learns, from the whole distribution"
            fits = method == "none" or given in (None, everything)
            require(fits, f"model.{name}", given, must_be)
        must_be = "empty with model=mutation, which is not vLLM's"
        require(not is_mutation or not engine, "model.engine", engine, must_be)
        infill, drafts = operators.get("infill"), [key for key in engine if key.startswith("spec")]
        must_be = f"0 with model.engine.{''.join(drafts[:1])}: vLLM can't ban tokens in drafts"
        require(not (drafts and infill), "search.operators.infill", infill, must_be)
        policy = self.width.policy
        must_be = (
            "fixed or turboevolve with operator verbalized: what a call costs is learned from "
            "children that have an answer each"
        )
        require(policy != "cost_aware" or not lists, "width.policy", policy, must_be)
        self._fits_its_advisor()
        return self

    def _fits_its_advisor(self) -> None:
        """Check what an advisor can't be combined with."""
        if not self.advisor.enabled:
            return
        kind = self.model.kind
        require(kind != "mutation", "model.kind", kind, "vllm where advisor.enabled is true")
        for name, weight in self.search.operators.items():
            must_be = f"0 with an advisor, whose experiments {' and '.join(ADVISED)} carry out"
            require(not weight or name in ADVISED, f"search.operators.{name}", weight, must_be)
        for key, value, barred, must_be in (
            ("pipeline.speculate", self.pipeline.speculate, True, "false"),
            ("prompts.layout", self.prompts.layout, "transcript", "stable or classic"),
            ("width.policy", self.width.policy, "cost_aware", "fixed or turboevolve"),
        ):
            require(value != barred, key, value, f"{must_be} where advisor.enabled is true")


_ADAPTER = TypeAdapter(RunSettings)


def settings_of(values: object) -> RunSettings:
    """Return the settings that a nested mapping is, with every key of them.

    Raises:
        UserError: in a line, the key that is wrong, its value and what it must be.
    """
    try:
        return _ADAPTER.validate_python(values)
    except ValidationError as error:
        raise UserError(in_a_line(error, kind=RunSettings)) from error


def _is_loopback(server: str) -> bool:
    found = re.fullmatch(r"127\.0\.0\.1:([1-9][0-9]{0,4})", server)
    return found is not None and int(found[1]) < 1 << 16


def _split(url: str) -> SplitResult | None:
    """Return the parts of a web address; None of what is none."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_address and url.isprintable() and " " not in url else None


def _is_folder_name(name: str) -> bool:
    is_a_name = name not in ("", ".", "..") and "/" not in name and name.isprintable()
    return is_a_name and len(name.encode()) <= _NAME_BYTES
