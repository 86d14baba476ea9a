"""vLLM's configuration of an engine on a GPU that is not there.

An H100 or H200 stands in the place of the machine's platform, so that vLLM resolves an engine's
arguments as it would there. Nothing is compiled, loaded or run. What vLLM asks of a model's class,
or of a compiled library, is answered here.

    facts = resolved([("H100", DATA / "qwen3_6_27b", "model=qwen3_6_27b")])

The faking is done in a process of its own, because vLLM's modules keep the platform that they
found when they were imported. One process does any number of jobs.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

GIB = 2**30
CARDS = {"H100": ("NVIDIA H100 80GB HBM3", 79 * GIB), "H200": ("NVIDIA H200", 139 * GIB)}
"""Names, and memory in bytes, rounded down to GiB."""


Job = tuple[str, Path, str]
"""A card of ``CARDS``, a model's folder with its ``config.json``, and arguments, between spaces."""


def resolved(jobs: Sequence[Job]) -> list[SimpleNamespace]:
    """Return what vLLM makes of each job's engine arguments, and what the engine says of it."""
    given = json.dumps([[card, str(folder), preset] for card, folder, preset in jobs])
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, __file__, given],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [SimpleNamespace(**each) for each in json.loads(done.stdout.splitlines()[-1])]


def _main(jobs: Sequence[Sequence[str]]) -> None:
    from engine.inference import prepare

    prepare(threads=1, kv_cache_gb=1)
    platform = _fake()
    facts = []
    for card, folder, preset in jobs:
        platform.title, platform.memory = CARDS[card]
        facts.append(_facts(folder, preset))
    print(json.dumps(facts))


def _facts(folder: str, preset: str) -> dict[str, Any]:
    from engine import config
    from engine.core import UserError
    from engine.inference.engine_options import chunk_tokens, engine_args, plan_of
    from engine.inference.kv_server import KVTransfer
    from engine.inference.llm import _kv_transfer_config

    resolved = config.resolve(preset.split())
    settings, learning = resolved.model, resolved.learning
    try:
        args = engine_args(settings=settings, folder=folder, seed=0, learning=learning)
    except UserError as error:
        return {"refused": str(error)}
    args.skip_tokenizer_init = True
    if resolved.cache.kind == "lmcache":
        transfer = KVTransfer(port=5555, weights="weights", pid=1)
        args.kv_transfer_config = _kv_transfer_config(transfer)
    made = args.create_engine_config()
    try:
        chunk: int | str = chunk_tokens(settings=settings, folder=folder)
    except UserError as error:
        chunk = str(error)
    plan = plan_of(settings, Path(folder), learning=learning)
    assert plan is not None
    model, cache, scheduler = made.model_config, made.cache_config, made.scheduler_config
    block_size = cache.block_size
    return {
        "device": made.device_config.device_type,
        "max_num_seqs": scheduler.max_num_seqs,
        "max_num_batched_tokens": scheduler.max_num_batched_tokens,
        "chunked_prefill": scheduler.enable_chunked_prefill,
        "async_scheduling": scheduler.async_scheduling,
        "max_model_len": model.max_model_len,
        "is_hybrid": model.is_hybrid,
        "takes_images": model.is_multimodal_model,
        "language_model_only": bool(
            model.multimodal_config and model.multimodal_config.language_model_only
        ),
        "kv_of_layer": 4 * model.get_num_kv_heads(made.parallel_config) * model.get_head_size(),
        "attention_layers": model.get_num_layers_by_block_type(made.parallel_config, "attention"),
        "block_size": block_size,
        "prefix_match_unit": cache.prefix_match_unit,
        "prefix_caching": cache.enable_prefix_caching,
        "state_mode": cache.mamba_cache_mode,
        "memory_share": cache.gpu_memory_utilization,
        "full_graphs": made.compilation_config.cudagraph_mode.has_full_cudagraphs(),
        "largest_graph": made.compilation_config.max_cudagraph_capture_size,
        "aligned_block": _aligned_block(made) if model.is_hybrid else block_size,
        "chunk": chunk,
        "plan": dataclasses.asdict(plan),
        "plan_line": str(plan),
        "logprobs": model.logprobs_mode,
        "kv_role": made.kv_transfer_config and made.kv_transfer_config.kv_role,
        "kv_connector": made.kv_transfer_config and made.kv_transfer_config.kv_connector,
        "adapters": made.lora_config and made.lora_config.target_modules,
    }


def _fake() -> Any:
    """Let vLLM and the engine take this machine for one with the card that is returned."""
    for name in ("vllm._C_stable_libtorch", "vllm._moe_C_stable_libtorch"):
        sys.modules[name] = ModuleType(name)
    for name in ("vllm.vllm_flash_attn", "vllm.vllm_flash_attn.flash_attn_interface"):
        sys.modules[name] = _Anything(name)

    import vllm.config.vllm
    import vllm.platforms
    from vllm import _custom_ops
    from vllm.model_executor.models import registry
    from vllm.platforms.cuda import NvmlCudaPlatform
    from vllm.platforms.interface import DeviceCapability

    from engine.inference import engine_options, weights

    class Faked(NvmlCudaPlatform):  # type: ignore[misc]
        title, memory = "", 0
        get_device_capability = classmethod(lambda cls, device_id=0: DeviceCapability(9, 0))
        get_device_name = classmethod(lambda cls, device_id=0: cls.title)
        get_device_total_memory = classmethod(lambda cls, device_id=0: cls.memory)
        is_fully_connected = classmethod(lambda cls, physical_device_ids: True)
        log_warnings = classmethod(lambda cls: None)

        @classmethod
        def has_device_capability(cls, capability: Any, device_id: int = 0) -> bool:
            asked = divmod(capability, 10) if isinstance(capability, int) else capability
            return tuple(asked) <= (9, 0)

    vllm.platforms._current_platform = Faked()
    vllm.config.vllm.HAS_TRITON = True
    for name in vars(_custom_ops):
        if name.startswith("cutlass") and "support" in name:
            setattr(_custom_ops, name, lambda capability: True)
    registry._LazyRegisteredModel.inspect_model_cls = _inspected
    for module in (engine_options, weights):
        module.is_cpu_build = lambda: False
    return Faked


def _aligned_block(config: Any) -> int:
    """Return the tokens of a block once vLLM has aligned it with a hybrid's states."""
    import vllm.platforms
    from vllm.model_executor.layers.mamba.mamba_utils import (
        MambaStateDtypeCalculator,
        MambaStateShapeCalculator,
    )
    from vllm.model_executor.models import ModelRegistry
    from vllm.v1.attention.backend import MultipleOf

    class FlashAttention:
        customize_spec = staticmethod(lambda spec: spec)
        get_supported_kernel_block_sizes = staticmethod(lambda: [MultipleOf(16)])

    class GatedDeltaNet:
        @staticmethod
        def get_mamba_state_shape_from_config(config: Any) -> Any:
            text = config.model_config.hf_text_config
            return MambaStateShapeCalculator.gated_delta_net_state_shape(
                config.parallel_config.tensor_parallel_size,
                text.linear_num_key_heads,
                text.linear_num_value_heads,
                text.linear_key_head_dim,
                text.linear_value_head_dim,
                text.linear_conv_kernel_dim,
            )

        @staticmethod
        def get_mamba_state_dtype_from_config(config: Any) -> Any:
            cache = config.cache_config
            return MambaStateDtypeCalculator.gated_delta_net_state_dtype(
                config.model_config.dtype, cache.mamba_cache_dtype, cache.mamba_ssm_cache_dtype
            )

    platform: Any = vllm.platforms.current_platform
    backends = classmethod(lambda *_: [FlashAttention])
    with (
        mock.patch.object(
            ModelRegistry, "resolve_model_cls", lambda *_, **__: (GatedDeltaNet, None)
        ),
        mock.patch.object(type(platform), "_find_non_ssm_backends", backends),
    ):
        platform._align_hybrid_block_size(config, FlashAttention)
    return int(config.cache_config.block_size)


class _Anything(ModuleType):
    """A module that has every function, none of which does anything."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


def _inspected(self: Any) -> Any:
    """Say of a model's class what vLLM would find in it."""
    from vllm.model_executor.models.registry import _ModelInfo

    fields = dataclasses.fields(_ModelInfo)
    answers = {each.name: False if each.type in ("bool", bool) else None for each in fields}
    is_hybrid = "Qwen3_5" in self.class_name
    known: dict[str, Any] = {
        "architecture": self.class_name,
        "is_text_generation_model": True,
        "is_hybrid": is_hybrid,
        "has_inner_state": is_hybrid,
        "supports_mamba_prefix_caching": is_hybrid,
        "supports_multimodal": "ForConditionalGeneration" in self.class_name,
        "default_seq_pooling_type": "LAST",
        "default_tok_pooling_type": "ALL",
        "score_type": "bi-encoder",
    }
    return _ModelInfo(**{name: known.get(name, answer) for name, answer in answers.items()})


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]))
