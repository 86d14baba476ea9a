"""vLLM's FlashAttention backend, with decode over a shared prefix where that pays.

vLLM makes the metadata of a step once for all layers (`Builder.build`), outside of a CUDA graph,
and runs attention (`Impl.forward`) in it. So the groups are found in the one and used in the other.
A step is split in two passes by its shape alone, for which a graph is captured; which rows are
groups, if any, is data.

Covers Hopper (FlashAttention 3), full attention. Everything else, and each step that is too small
or has a long prefill, is left to vLLM's own code: long prefills are bound by arithmetic, and the
partial results of many splits would take much memory.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from vllm.config import get_layers_from_vllm_config
from vllm.model_executor.layers.attention import Attention
from vllm.platforms import current_platform
from vllm.utils.torch_utils import canonicalize_singleton_dim_strides, is_quantized_kv_cache
from vllm.v1.attention.backend import AttentionType, CommonAttentionMetadata
from vllm.v1.attention.backends import flash_attn
from vllm.v1.kv_cache_interface import FullAttentionSpec

from engine.inference.shared_prefix.attention import Pass, Varlen, shared_prefix_attention
from engine.inference.shared_prefix.limits import Limits
from engine.inference.shared_prefix.plan import Plan, Planner

_FLASH_ATTENTION = 3


@dataclass
class Metadata(flash_attn.FlashAttentionMetadata):  # type: ignore[misc]
    """vLLM's metadata of a step, and the prefix pass.

    With one, ``seq_lens``, ``block_table`` and ``scheduler_metadata`` are those of the suffix pass.
    """

    prefix: Pass | None = None


class Impl(flash_attn.FlashAttentionImpl):  # type: ignore[misc]
    """Runs the attention of a layer."""

    @property
    def is_plain(self) -> bool:
        """Whether the layer's attention over two parts of its KV can be joined by log-sum-exp."""
        return (
            self.vllm_flash_attn_version == _FLASH_ATTENTION
            and self.attn_type == AttentionType.DECODER
            and self.sliding_window == (-1, -1)
            and self.alibi_slopes is None
            and self.sinks is None
        )

    @staticmethod
    def varlen() -> Varlen:
        """Return the attention function, which vLLM has on CUDA only."""
        return flash_attn.flash_attn_varlen_func  # type: ignore[no-any-return]

    def forward(
        self,
        layer: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        kv_cache: torch.Tensor,
        attn_metadata: Any,
        output: torch.Tensor,
        output_scale: torch.Tensor | None = None,
        output_block_scale: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Write the layer's attention to ``output``; see the base class for the shapes."""
        prefix = getattr(attn_metadata, "prefix", None)
        if prefix is None:
            whole: torch.Tensor = super().forward(
                layer,
                query,
                key,
                value,
                kv_cache,
                attn_metadata,
                output,
                output_scale,
                output_block_scale,
            )
            return whole
        if output_scale is not None or output_block_scale is not None:
            raise NotImplementedError("FlashAttention does not quantize its output")
        count = attn_metadata.num_actual_tokens
        keys, values = self._blocks(kv_cache)
        shared_prefix_attention(
            query=query[:count],
            keys=keys,
            values=values,
            out=output[:count],
            prefix=prefix,
            suffix=Pass(
                starts=attn_metadata.query_start_loc,
                lengths=attn_metadata.seq_lens,
                table=attn_metadata.block_table,
                longest_query=attn_metadata.max_query_len,
                longest=attn_metadata.max_seq_len,
                schedule=attn_metadata.scheduler_metadata,
            ),
            scales=lambda sequences: self._scales(layer, sequences),
            varlen=self.varlen(),
            softmax_scale=self.scale,
            softcap=self.logits_soft_cap,
            fa_version=self.vllm_flash_attn_version,
            num_splits=attn_metadata.max_num_splits,
        )
        return output

    def _blocks(self, kv_cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values of the cache, each (blocks, block_size, kv_heads, head_size)."""
        both = kv_cache.transpose(1, 2)
        keys, values = (
            canonicalize_singleton_dim_strides(each)  # TMA needs aligned strides
            for each in (both[..., : self.head_size], both[..., self.head_size :])
        )
        if is_quantized_kv_cache(self.kv_cache_dtype):
            kind = current_platform.fp8_dtype()
            return keys.view(kind), values.view(kind)
        return keys, values

    def _scales(self, layer: Any, sequences: int) -> dict[str, torch.Tensor | None]:
        """Return the scales of quantized queries and KV, each (sequences, kv_heads)."""
        shape = (sequences, self.num_kv_heads)
        return {
            "q_descale": layer._q_scale.expand(shape) if self.supports_quant_query_input else None,
            "k_descale": layer._k_scale.expand(shape),
            "v_descale": layer._v_scale.expand(shape),
        }


class Builder(flash_attn.FlashAttentionMetadataBuilder):  # type: ignore[misc]
    """Makes the metadata of a step for a group of layers."""

    supports_update_block_table = False  # the groups follow from the table

    limits = Limits()

    def __init__(
        self,
        kv_cache_spec: Any,
        layer_names: list[str],
        vllm_config: Any,
        device: torch.device,
    ) -> None:
        """See the base class."""
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        self._splits_layers = self._can_split(kv_cache_spec, layer_names, vllm_config)
        self._max_rows = int(vllm_config.scheduler_config.max_num_seqs)
        self._most_tokens = int(self.max_cudagraph_size or self._max_rows)
        self._planner: Planner | None = None
        self._schedule: torch.Tensor | None = None

    def _can_split(self, spec: Any, layer_names: list[str], vllm_config: Any) -> bool:
        """Whether attention of all the layers is a sum over KV that may be cut anywhere."""
        layers = get_layers_from_vllm_config(vllm_config, Attention, layer_names)
        return (
            isinstance(spec, FullAttentionSpec)
            and self.dcp_world_size == 1
            # A draft's steps change the lengths in place, after the groups were found.
            and vllm_config.speculative_config is None
            and all(isinstance(each.impl, Impl) and each.impl.is_plain for each in layers.values())
        )

    def build(
        self,
        common_prefix_len: int,
        common_attn_metadata: CommonAttentionMetadata,
        fast_build: bool = False,
    ) -> Any:
        """Return the metadata of a step: vLLM's, or that of two passes."""
        common = common_attn_metadata
        if not self._splits(common):
            return super().build(common_prefix_len, common, fast_build)
        plan = self._plan(common)
        # Each tensor is vLLM's own or a view of a buffer that stays, so that a graph can hold it.
        suffix = replace(common, seq_lens=plan.row_lengths, block_table_tensor=plan.row_table)
        metadata = super().build(common_prefix_len, suffix, fast_build)
        own = {each.name: getattr(metadata, each.name) for each in fields(metadata)}
        return Metadata(**own, prefix=self._prefix_pass(plan, metadata))

    def _splits(self, common: CommonAttentionMetadata) -> bool:
        """Whether a step is split in two passes: by what is the same at a graph's capture."""
        return (
            self._splits_layers
            and common.causal is True
            and common.num_reqs >= self.limits.step
            and common.num_actual_tokens <= self._most_tokens
        )

    def _plan(self, common: CommonAttentionMetadata) -> Plan:
        table = common.block_table_tensor
        if self._planner is None:  # vLLM's tables keep their width; it builds before it captures
            self._planner = Planner(
                limits=self.limits,
                block_size=self.block_size,
                max_rows=self._max_rows,
                width=table.shape[1],
                device=self.device,
            )
        return self._planner.plan(
            table=table, lengths=common.seq_lens, starts=common.query_start_loc
        )

    def _prefix_pass(self, plan: Plan, suffix: Any) -> Pass:
        """Return the prefix pass, with a schedule if the suffix pass has one."""
        schedule = self._get_scheduler_metadata(
            aot_schedule=suffix.scheduler_metadata is not None,
            batch_size=len(plan.segment_lengths),
            cu_query_lens=plan.segment_starts,
            max_query_len=suffix.num_actual_tokens,
            seqlens=plan.segment_lengths,
            max_seq_len=suffix.max_seq_len,
            causal=False,
            max_num_splits=suffix.max_num_splits,
        )
        return Pass(
            starts=plan.segment_starts,
            lengths=plan.segment_lengths,
            table=plan.segment_table,
            longest_query=suffix.num_actual_tokens,
            longest=suffix.max_seq_len,
            schedule=self._kept(schedule),
        )

    def _kept(self, schedule: torch.Tensor | None) -> torch.Tensor | None:
        """Return a schedule where a captured graph reads it; `_store_scheduler_metadata` likewise.

        What lies behind it is zeroed, as vLLM does: thread blocks may read it.
        """
        if schedule is None or not self.use_full_cuda_graph:
            return schedule
        if self._schedule is None:
            # As large as vLLM's own: there are fewer segments than rows.
            self._schedule = torch.zeros_like(self.scheduler_metadata)
        count = len(schedule)
        self._schedule[:count] = schedule
        self._schedule[count:] = 0
        return self._schedule[:count]


class Backend(flash_attn.FlashAttentionBackend):  # type: ignore[misc]
    """What vLLM's registry points to."""

    @staticmethod
    def get_name() -> str:
        """Return the name in vLLM's registry."""
        return "CUSTOM"

    @staticmethod
    def get_impl_cls() -> type[Impl]:
        """Return what runs a layer's attention."""
        return Impl

    @staticmethod
    def get_builder_cls() -> type[Builder]:
        """Return what makes the metadata of a step."""
        return Builder
