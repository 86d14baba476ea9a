"""Which models are not expected to follow instructions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine import config
from engine.inference import find_weights, why_no_instructions

LAYERS = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8}
TEMPLATE = {"chat_template": "{{ messages }}"}
INT4 = {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 4}}}}


def model(folder: Path, *, gigabytes: float, tokenizer: dict[str, Any], **more: Any) -> Path:
    """Write a model's folder whose weights are a hole of so many bytes."""
    (folder / "config.json").write_text(json.dumps(LAYERS | more))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    with (folder / "model.safetensors").open("wb") as weights:
        weights.truncate(int(gigabytes * 1e9))
    return folder


@pytest.mark.parametrize(
    ("gigabytes", "more", "why"),
    [
        (8.0, {}, None),
        (5.8, {}, "is small (2.9 billion parameters, below 3)"),
        (5.8, {"quantization_config": {"quant_method": "fp8"}}, None),
        (1.6, {"quantization_config": {"quant_method": "awq"}}, None),
        (1.6, {"quantization_config": {"quant_method": "another"}}, None),
        (1.6, {"quantization_config": INT4}, None),
        (1.4, {"quantization_config": INT4}, "is small (2.8 billion parameters, below 3)"),
        (3.5, {"quantization_config": {"quant_method": "bitsandbytes"}}, None),
        (8.0, {"dtype": "float32"}, "is small (2 billion parameters, below 3)"),
        (8.0, {"torch_dtype": "bfloat16"}, None),
    ],
)
def test_a_small_model_is_one_of_few_parameters_whatever_their_format(
    tmp_path: Path, gigabytes: float, more: dict[str, Any], why: str | None
) -> None:
    folder = model(tmp_path, gigabytes=gigabytes, tokenizer=TEMPLATE, **more)
    assert why_no_instructions(folder) == why


def test_a_model_without_a_chat_template_was_not_taught(tmp_path: Path) -> None:
    folder = model(tmp_path, gigabytes=60, tokenizer={})
    assert why_no_instructions(folder) == "has no chat template"
    (folder / "tokenizer_config.json").write_text("{")
    assert why_no_instructions(folder) == "has no chat template"
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    assert why_no_instructions(folder) is None


def test_the_embedded_model_is_small() -> None:
    folder = find_weights(config.resolve([]).model)
    assert why_no_instructions(folder) == "is small (0.13 billion parameters, below 3)"
