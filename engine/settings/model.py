"""Which model a run works with: the group ``model``."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from engine.section import Count, Flag, Number, Section, Share, Text, Whole, require, section

Dtype = Literal["auto", "bfloat16", "float32"]
SharedPrefix = Literal["off", "auto"]


@section
class ModelSettings(Section):
    """Which model, and what the engine may use for it.

    Attributes:
        name: the preset's name.
        kind: ``vllm``, or ``mutation`` for none: see ``engine.mutation``.
        path: folder or hub id of the weights; None for the embedded SmolLM2-135M-Instruct.
        cache_dir: folder in which the embedded model is kept, and what was measured of models; None
            for ``brood`` in the user's cache folder.
        dtype: the format of the model's numbers; ``auto`` for the faster one on a CPU (see
            ``engine.inference.number_format``), and on a GPU for vLLM's choice.
        max_model_len: the longest prompt plus completion, in tokens; None for the model's own, up
            to 32,768 on a GPU and 4,096 on a CPU.
        max_tokens: the longest answer of the operators that ask for whole programs or diffs; for
            one that lists K programs, K times as many, up to half of the context. None for an
            eighth of the context.
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
        step_seconds: how long a step of the engine may last; one that lasts longer hangs, and ends
            the process, see ``engine.inference.watchdog``. Raise it for a large model on a CPU
            whose prompts take that long.
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
    step_seconds: Number = Field(default=1800, gt=0)  # of runs that began before it was there
    shared_prefix: SharedPrefix
    engine: dict[str, Any]

    @model_validator(mode="after")
    def _leaves_room_for_a_prompt(self) -> Self:
        length = self.max_model_len
        must_be = f"below model.max_model_len ({length})"
        require(self.max_tokens < length, "max_tokens", self.max_tokens, must_be)
        return self
