"""``bench.cpu_format``: INT8 weights say what the ones that they were made of say."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from bench.int8 import int8_folder


def test_int8_weights_times_their_scales_are_the_weights(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "config.json").write_text('{"vocab_size": 8}')
    (source / "tokenizer.json").write_text("{}")
    weight = torch.randn(16, 32, generator=torch.Generator().manual_seed(0))
    weight[3] = 0  # an output that nothing goes into
    tensors = {"a.q_proj.weight": weight, "model.embed_tokens.weight": torch.ones(8, 32)}
    save_file(tensors, source / "model.safetensors")
    made = int8_folder(source, tmp_path / "int8")
    found = load_file(made / "model.safetensors")
    whole, scale = found["a.q_proj.weight"], found["a.q_proj.weight_scale"]
    assert whole.dtype == torch.int8 and scale.shape == (16, 1)
    assert whole.abs().amax(dim=1)[[0, 1, 2, 4]].tolist() == [127] * 4
    assert torch.all((whole.float() * scale - weight).abs() <= scale / 2 + 1e-9)
    assert torch.equal(found["model.embed_tokens.weight"], tensors["model.embed_tokens.weight"])
    assert (made / "tokenizer.json").is_file()
    described = json.loads((made / "config.json").read_text())
    assert described["vocab_size"] == 8
    assert described["quantization_config"]["quant_method"] == "compressed-tensors"
