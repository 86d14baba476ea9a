"""A model that several GPUs share: what each of them has, and what vLLM makes of it."""

from __future__ import annotations

from pathlib import Path

from faked_card import GIB, resolved

from engine.inference.shape import ModelShape, read_shape

DATA = Path(__file__).parent / "data"


def test_each_gpu_has_its_share_of_the_model() -> None:
    whole = ModelShape(
        weights=1000,
        attention_layers=3,
        kv_of_layer=400,
        kv_heads=4,
        state_layers=1,
        state_of_layer=64,
        takes_images=False,
    )
    half, eighth = whole.on_each_of(2), whole.on_each_of(8)
    assert (half.weights, half.kv_of_layer, half.state_of_layer) == (500, 200, 32)
    # Four heads of KV on eight GPUs: two have the same one.
    assert (eighth.weights, eighth.kv_of_layer, eighth.kv_heads) == (125, 100, 1)
    assert whole.on_each_of(1) == whole


def test_a_model_on_two_gpus_resolves_on_a_faked_card() -> None:
    name, two = "qwen3_coder_30b", "model.engine.tensor_parallel_size=2"
    one, both, hybrid = resolved(
        [
            ("H100", DATA / name, f"model={name}"),
            ("H100", DATA / name, f"model={name} {two}"),
            ("H100", DATA / "qwen3_6_27b", f"model=qwen3_6_27b {two}"),
        ]
    )
    shape = read_shape(DATA / name).on_each_of(2)
    # What is read from config.json is what vLLM makes of it.
    assert (both.kv_of_layer, both.attention_layers) == (shape.kv_of_layer, shape.attention_layers)
    assert both.kv_of_layer == one.kv_of_layer // 2
    assert both.plan["weights"] == one.plan["weights"] // 2
    freed = one.plan["weights"] - both.plan["weights"]
    assert both.plan["cache"] == one.plan["cache"] + freed
    assert both.plan["tokens"] > 2 * one.plan["tokens"]
    assert both.plan_line.startswith("memory plan: 71.1 GiB of each of 2 GPUs' 79.0 GiB: weights")
    assert f"weights {one.plan['weights'] / 2 / GIB:.1f} GiB" in both.plan_line
    assert hybrid.kv_of_layer == read_shape(DATA / "qwen3_6_27b").on_each_of(2).kv_of_layer
    assert hybrid.aligned_block == read_shape(DATA / "qwen3_6_27b").on_each_of(2).aligned_block
