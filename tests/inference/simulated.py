"""vLLM's own scheduler and block pool, stepped without a model or a GPU.

What a simulation shows is what vLLM decides: which requests are in a step, in which order the model
runner takes them, which blocks of KV each one has, what is found in the prefix cache and who is
preempted. Tokens are drawn by chance; a request ends at its ``max_tokens``.

    engine = SimulatedEngine(folder=tmp_path, layout=full_attention(block_size=64), blocks=6000)
    engine.add("a", prompt, max_tokens=12)
    while engine.unfinished:
        step = engine.step()

Does not cover: async scheduling (a GPU's outputs come a step later, so that a request that ends is
in one step more), drafts, connectors, and the memory of a request's state beyond its blocks.
"""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kv_layouts import KVLayout, full_attention, hybrid

__all__ = ["KVLayout", "Row", "SimulatedEngine", "Step", "full_attention", "hybrid"]

_CONFIG = {  # of a model that is never made
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "vocab_size": 32000,
    "max_position_embeddings": 1 << 18,
    "torch_dtype": "bfloat16",
}
_VOCABULARY = range(3, 32000)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A request in a step.

    Attributes:
        request_id: as it was added.
        computed: its tokens whose KV was there before the step.
        scheduled: its tokens that the step computes.
        blocks: ids of its blocks, for each group of the layout.
    """

    request_id: str
    computed: int
    scheduled: int
    blocks: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Step:
    """What a step did.

    Attributes:
        rows: the requests in it, in the order in which vLLM's GPU runner (V2) takes them.
        cached: prompt tokens found in the cache, of requests that were scheduled for the first
            time.
        preempted: requests that lost their blocks to others before this step.
        sampled: requests that got a token.
        finished: requests that ended.
    """

    rows: tuple[Row, ...]
    cached: Mapping[str, int]
    preempted: frozenset[str]
    sampled: tuple[str, ...]
    finished: tuple[str, ...]


class SimulatedEngine:
    """Adds, steps and aborts requests as vLLM's engine does."""

    def __init__(
        self,
        *,
        folder: Path,
        layout: KVLayout,
        blocks: int,
        max_num_seqs: int = 64,
        max_num_batched_tokens: int = 8192,
        max_model_len: int = 32768,
        seed: int = 0,
    ) -> None:
        """Make the scheduler; the process has to be prepared (`engine.inference.prepare`).

        Args:
            folder: an empty one, for the model's ``config.json``.
            layout: of the KV cache.
            blocks: in the pool, over all groups; the first is never given out.
            max_num_seqs: most requests in a step.
            max_num_batched_tokens: most tokens in a step.
            max_model_len: the longest prompt plus completion.
            seed: of the tokens drawn.
        """
        from vllm.utils.hashing import get_hash_fn_by_name
        from vllm.v1.core.kv_cache_utils import (
            get_request_block_hasher,
            init_none_hash,
            resolve_cache_hit_alignment_tokens,
            resolve_kv_cache_block_sizes,
        )
        from vllm.v1.core.sched.scheduler import Scheduler
        from vllm.v1.kv_cache_interface import KVCacheConfig
        from vllm.v1.structured_output import StructuredOutputManager

        config = _engine_config(folder, layout, max_num_seqs, max_num_batched_tokens, max_model_len)
        config.cache_config.num_gpu_blocks = blocks
        cache = KVCacheConfig(
            num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=list(layout.groups)
        )
        # As vLLM's EngineCore does.
        block_size, hash_size = resolve_kv_cache_block_sizes(cache, config)
        cache.hash_block_size = hash_size
        cache.cache_hit_alignment_tokens = resolve_cache_hit_alignment_tokens(
            cache, config, block_size, hash_size
        )
        hash_function = get_hash_fn_by_name(config.cache_config.prefix_caching_hash_algo)
        init_none_hash(hash_function)
        self._hasher = get_request_block_hasher(hash_size, hash_function)
        self.scheduler = Scheduler(
            vllm_config=config,
            kv_cache_config=cache,
            structured_output_manager=StructuredOutputManager(config),
            log_stats=True,
            block_size=block_size,
            hash_block_size=hash_size,
        )
        self.config = config
        self._chance = random.Random(seed)

    @property
    def unfinished(self) -> int:
        """How many requests run or wait."""
        return int(self.scheduler.get_num_unfinished_requests())

    def tokens(self, count: int) -> list[int]:
        """Return so many token ids, drawn by chance."""
        return self._chance.choices(_VOCABULARY, k=count)

    def add(self, request_id: str, token_ids: Sequence[int], *, max_tokens: int) -> None:
        """Add a request; it is in a step as soon as there is room."""
        from vllm.sampling_params import SamplingParams
        from vllm.v1.request import Request

        sampling = SamplingParams(temperature=1.0, max_tokens=max_tokens, ignore_eos=True)
        self.scheduler.add_request(
            Request(request_id, list(token_ids), sampling, None, block_hasher=self._hasher)
        )

    def abort(self, request_id: str) -> None:
        """End a request, as when its child is complete."""
        from vllm.v1.request import RequestStatus

        self.scheduler.finish_requests(request_id, RequestStatus.FINISHED_ABORTED)

    def step(self) -> Step:
        """Schedule a step, and take in a token of each request whose tokens were all computed."""
        from vllm.v1.outputs import ModelRunnerOutput
        from vllm.v1.worker.gpu.model_runner import sort_batch_req_ids

        planned = self.scheduler.schedule()
        scheduled = planned.num_scheduled_tokens
        ids = sort_batch_req_ids(scheduled, {}, 1)
        rows = tuple(self._row(each, scheduled[each]) for each in ids)
        drawn = [self._drawn(each) for each in ids]
        outputs = self.scheduler.update_from_output(
            planned,
            ModelRunnerOutput(
                req_ids=ids,
                req_id_to_index={each: index for index, each in enumerate(ids)},
                sampled_token_ids=drawn,
                logprobs=None,
                prompt_logprobs_dict={},
                pooler_output=[],
            ),
        )
        return Step(
            rows=rows,
            cached={new.req_id: new.num_computed_tokens for new in planned.scheduled_new_reqs},
            preempted=frozenset(planned.preempted_req_ids or ()),
            sampled=tuple(each for each, tokens in zip(ids, drawn, strict=True) if tokens),
            finished=tuple(
                output.request_id
                for of_client in outputs.values()
                for output in of_client.outputs
                if output.finish_reason is not None
            ),
        )

    def _row(self, request_id: str, scheduled: int) -> Row:
        """Describe a request of the step; its count of computed tokens has been raised already."""
        return Row(
            request_id=request_id,
            computed=self.scheduler.requests[request_id].num_computed_tokens - scheduled,
            scheduled=scheduled,
            blocks=tuple(
                tuple(ids) for ids in self.scheduler.kv_cache_manager.get_block_ids(request_id)
            ),
        )

    def _drawn(self, request_id: str) -> list[int]:
        request = self.scheduler.requests[request_id]
        return self.tokens(1) if request.num_computed_tokens >= request.num_tokens else []


def _engine_config(
    folder: Path,
    layout: KVLayout,
    max_num_seqs: int,
    max_num_batched_tokens: int,
    max_model_len: int,
) -> Any:
    """Return vLLM's configuration, with the cache's as it is once a model is loaded."""
    from vllm import EngineArgs

    (folder / "config.json").write_text(json.dumps(_CONFIG))
    config = EngineArgs(
        model=str(folder),
        skip_tokenizer_init=True,
        load_format="dummy",
        dtype="bfloat16",
        enforce_eager=True,
        enable_prefix_caching=True,
        enable_chunked_prefill=True,
        max_model_len=max_model_len,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
        block_size=32,  # the CPU backend takes no other; set below
    ).create_engine_config()
    cache = config.cache_config
    cache.block_size = layout.block_size
    cache.prefix_match_unit = layout.match_unit
    cache.mamba_cache_mode = layout.state_mode
    if layout.state_mode != "none":
        cache.mamba_block_size = layout.block_size
    return config
