"""Weights in INT8, for benchmarks: a folder that vLLM loads as compressed-tensors W8A8.

Symmetric, one scale for each output of a linear layer; activations are quantised as the model
runs, one scale for each token. The embedding and the output layer stay as they are.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

_MOST = 127


def int8_folder(source: Path, target: Path) -> Path:
    """Write the model of the folder ``source`` in INT8; return the folder."""
    import torch
    from safetensors.torch import load_file, save_file

    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.safetensors*"))
    tensors: dict[str, Any] = {}
    for path in sorted(source.glob("*.safetensors")):
        for name, weight in load_file(path).items():
            if not name.endswith("_proj.weight"):
                tensors[name] = weight
                continue
            scale = weight.float().abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / _MOST
            tensors[name] = (weight.float() / scale).round().clamp(-_MOST, _MOST).to(torch.int8)
            tensors[f"{name}_scale"] = scale.to(weight.dtype)
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    path = target / "config.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    eight: dict[str, Any] = {"num_bits": 8, "type": "int", "symmetric": True}
    values["quantization_config"] = {
        "quant_method": "compressed-tensors",
        "format": "int-quantized",
        "quantization_status": "compressed",
        "ignore": ["lm_head"],
        "config_groups": {
            "group_0": {
                "targets": ["Linear"],
                "weights": {**eight, "strategy": "channel", "dynamic": False},
                "input_activations": {**eight, "strategy": "token", "dynamic": True},
            }
        },
    }
    path.write_text(json.dumps(values, indent=1), encoding="utf-8")
    return target
