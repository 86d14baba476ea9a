"""vLLM's backend of ours: when it splits a step, what a layer writes, and how vLLM gets to it.

In place of FlashAttention stands plain torch; FlashAttention itself runs nowhere but on a GPU.
"""

import random
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import layers
import numpy as np
import pytest
import torch
from steps import BatchStep, batch_step

from engine import config
from engine.core import UserError
from engine.inference import compat, engine_options, is_cpu_build, prepare
from engine.inference.engine_options import engine_args
from engine.inference.shared_prefix import reference, register
from engine.inference.shared_prefix.limits import Limits
from engine.settings import ModelSettings

stands_in = pytest.mark.skipif(
    not is_cpu_build(), reason="vLLM for GPUs makes a step's metadata with FlashAttention itself"
)
BF16 = 2.0**-8
LLAMA_LIKE = Path(__file__).parents[1] / "data" / "llama_like"


@pytest.fixture(scope="module", autouse=True)
def prepared() -> None:
    prepare(threads=1, kv_cache_gb=1)


@pytest.fixture(scope="module")
def engine_config(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return layers.engine_config(tmp_path_factory.mktemp("model"))


def decoding(*groups: int, queries: tuple[int, int] = (1, 1), padding: int = 0) -> BatchStep:
    """Return a step whose groups share 2,048 tokens or more."""
    return batch_step(
        random.Random(0),
        groups=[*groups],
        shared=(128, 130),
        own=(1, 200),
        block_size=layers.BLOCK,
        width=160,
        queries=queries,
        padding=padding,
    )


# What a layer writes.


@stands_in
@pytest.mark.parametrize("padding", [0, 5])
def test_a_layer_writes_attention(interpreter: Executor, tmp_path: Path, padding: int) -> None:
    step = batch_step(
        random.Random(1),
        groups=[4, 1, 6],
        shared=(4, 9),
        own=(1, 60),
        block_size=layers.BLOCK,
        width=20,
        queries=(1, 3),
        padding=padding,
    )
    _, at = np.unique(step.tables, return_inverse=True)
    step = BatchStep(
        tables=at.reshape(step.tables.shape).astype(np.int32),
        lengths=step.lengths,
        starts=step.starts,
    )
    chance = torch.Generator().manual_seed(0)
    shape = (int(at.max()) + 1, layers.KV_HEADS, layers.BLOCK, 2 * layers.HEAD_SIZE)
    cache = torch.randn(shape, generator=chance).bfloat16()
    tokens = int(step.starts[-1])
    shape = (tokens + padding, layers.HEADS, layers.HEAD_SIZE)
    query = torch.randn(shape, generator=chance).bfloat16()
    limits = Limits(tokens=64, rows=3, step=3)
    is_split, found = interpreter.submit(
        layers.forward, tmp_path, step, limits, query, cache
    ).result()
    assert is_split
    keys, values = cache.double().transpose(1, 2).split(layers.HEAD_SIZE, dim=-1)
    wanted = reference.attention(
        query=query[:tokens].double().numpy(),
        keys=keys.numpy(),
        values=values.numpy(),
        tables=step.tables,
        lengths=step.lengths,
        starts=step.starts,
        scale=layers.HEAD_SIZE**-0.5,
    )
    assert np.abs(found[:tokens].double().numpy() - wanted).max() <= 2 * BF16 * np.abs(wanted).max()


@stands_in
def test_a_step_in_one_pass_is_left_to_vllm(
    engine_config: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm.v1.attention.backends.flash_attn import FlashAttentionImpl

    given = []
    monkeypatch.setattr(FlashAttentionImpl, "forward", lambda *arguments: given.append(arguments))
    attention = layers.impl()
    metadata = layers.builder(engine_config, attention).build(0, layers.common(decoding(3)))
    others = [object() for _ in range(5)]
    attention.forward(*others, metadata, *others[:1])
    assert given == [(attention, *others, metadata, others[0], None, None)]


# When a step is split.


def splits(builder: Any, step: BatchStep, **changes: Any) -> bool:
    """Whether a step is in two passes; which is decided before any kernel runs."""
    return bool(builder._splits(layers.common(step, **changes)))


def test_a_step_is_split_by_its_shape_alone(engine_config: Any) -> None:
    """A graph captured for a shape serves steps with and without groups, so nothing else counts."""
    builder = layers.builder(engine_config, layers.impl(), layers.impl())
    assert splits(builder, decoding(8, 8)) and splits(builder, decoding(*[1] * 16))
    assert splits(builder, decoding(13, padding=3))
    assert not splits(builder, decoding(15))
    assert splits(builder, decoding(8, 8), num_actual_tokens=64)
    assert not splits(builder, decoding(8, 8), num_actual_tokens=65)  # a long prefill
    assert not splits(builder, decoding(16), causal=False)
    assert not splits(builder, decoding(16), causal=torch.ones(16, dtype=torch.int32))


@pytest.mark.parametrize(
    "options",
    [
        {"sliding_window": 128},
        {"alibi_slopes": [0.5] * layers.HEADS},
        {"version": 2},
        {"version": 4},
        {"version": None},
        {"attn_type": "encoder_only"},
    ],
    ids=str,
)
def test_a_layer_whose_attention_is_no_plain_sum_is_left_to_vllm(
    engine_config: Any, options: dict[str, Any]
) -> None:
    builder = layers.builder(engine_config, layers.impl(), layers.impl(**options))
    assert not splits(builder, decoding(16))


def test_a_layer_with_sinks_is_left_to_vllm(engine_config: Any) -> None:
    attention = layers.impl()
    attention.sinks = torch.zeros(layers.HEADS)
    assert not splits(layers.builder(engine_config, attention), decoding(16))


def test_drafts_are_left_to_vllm(engine_config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_config, "speculative_config", object())
    assert not splits(layers.builder(engine_config, layers.impl()), decoding(16))


def test_windows_of_a_group_of_layers_are_left_to_vllm(engine_config: Any) -> None:
    from vllm.v1.kv_cache_interface import SlidingWindowSpec

    spec = SlidingWindowSpec(
        block_size=layers.BLOCK,
        num_kv_heads=layers.KV_HEADS,
        head_size=layers.HEAD_SIZE,
        dtype=torch.bfloat16,
        sliding_window=128,
    )
    assert not splits(layers.builder(engine_config, layers.impl(), spec=spec), decoding(16))


# What a graph reads.


def test_a_schedule_stays_where_a_graph_reads_it(engine_config: Any) -> None:
    builder = layers.builder(engine_config, layers.impl())
    builder.use_full_cuda_graph = True
    builder.scheduler_metadata = torch.zeros(9, dtype=torch.int32)
    long, short = (torch.arange(1, count, dtype=torch.int32) for count in (9, 4))
    first = builder._kept(long)
    assert first.tolist() == long.tolist()
    second = builder._kept(short)
    assert second.data_ptr() == first.data_ptr() != builder.scheduler_metadata.data_ptr()
    assert second.tolist() == short.tolist()
    assert first.tolist() == [1, 2, 3, 0, 0, 0, 0, 0]  # nothing of the longer one is left
    assert builder._kept(None) is None
    builder.use_full_cuda_graph = False
    assert builder._kept(long) is long


# How vLLM gets to it.


@pytest.fixture
def hooks_of_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """FlashAttention's function is there, as on CUDA."""
    from vllm.v1.attention.backends import flash_attn

    monkeypatch.setattr(
        flash_attn, "flash_attn_varlen_func", lambda **arguments: None, raising=False
    )


def test_the_registry_leads_to_the_backend(hooks_of_cuda: None) -> None:
    from vllm.v1.attention.backends.registry import AttentionBackendEnum

    from engine.inference.shared_prefix.backend import Backend, Builder, Impl

    kind = AttentionBackendEnum[register()]
    assert kind.get_class() is Backend
    assert AttentionBackendEnum[Backend.get_name()] is kind
    assert (Backend.get_impl_cls(), Backend.get_builder_cls()) == (Impl, Builder)


@pytest.mark.parametrize("head_size", [128, 256])
def test_vllm_takes_the_backend_where_it_takes_flash_attention(
    hooks_of_cuda: None, tmp_path: Path, head_size: int
) -> None:
    from vllm import EngineArgs
    from vllm.platforms.interface import DeviceCapability
    from vllm.v1.attention.backends.registry import AttentionBackendEnum

    layers.engine_config(tmp_path)  # writes the model's config.json
    args = EngineArgs(
        model=str(tmp_path), skip_tokenizer_init=True, attention_backend=register(), block_size=32
    )
    kind = args.create_engine_config().attention_config.backend
    assert kind is AttentionBackendEnum.CUSTOM
    reasons = kind.get_class().validate_configuration(
        head_size=head_size,
        dtype=torch.bfloat16,
        kv_cache_dtype="auto",
        block_size=64,
        use_mla=False,
        has_sink=False,
        use_sparse=False,
        use_mm_prefix=False,
        use_per_head_quant_scales=False,
        device_capability=DeviceCapability(9, 0),
        attn_type="decoder",
    )
    assert reasons == []


def model_settings(*arguments: str) -> ModelSettings:
    return config.resolve(["model=smollm2", *arguments]).model


def test_it_is_off_by_default(hooks_of_cuda: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from vllm.platforms import current_platform

    off, auto = model_settings(), model_settings("model.shared_prefix=auto")
    assert (off.shared_prefix, auto.shared_prefix) == ("off", "auto")

    def backend(settings: ModelSettings) -> Any:
        args = engine_args(settings=settings, folder=str(LLAMA_LIKE), seed=0)
        return args.attention_backend

    platform = type(current_platform)
    monkeypatch.setattr(platform, "is_device_capability_family", lambda self, family: False)
    with monkeypatch.context() as patched:
        patched.setattr(platform, "is_cpu", lambda self: True)
        assert backend(auto) is None
    monkeypatch.setattr(platform, "is_cpu", lambda self: False)
    monkeypatch.setattr(engine_options, "_gpu_memory", lambda: 80 << 30)
    assert backend(auto) is None  # on a GPU before or after Hopper
    monkeypatch.setattr(platform, "is_device_capability_family", lambda self, family: family == 90)
    assert backend(off) is None
    assert backend(auto) == "CUSTOM"
    own = model_settings("model.shared_prefix=auto", "model.engine.attention_backend=FLASHINFER")
    assert backend(own) == "FLASHINFER"


def test_another_word_than_off_or_auto_is_refused() -> None:
    with pytest.raises(UserError, match=r"model.shared_prefix is 'on'; it must be 'off' or 'auto'"):
        model_settings("model.shared_prefix=on")


def test_a_vllm_that_it_does_not_fit_ends_the_start(
    hooks_of_cuda: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm.v1.attention.backends.flash_attn import FlashAttentionMetadataBuilder

    monkeypatch.delattr(FlashAttentionMetadataBuilder, "_get_scheduler_metadata")
    with pytest.raises(UserError, match=r"FlashAttentionMetadataBuilder\._get_scheduler_metadata"):
        register()
    assert compat.check("engine") is None
