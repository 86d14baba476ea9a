"""The adapter of a language model that is a part of one that takes images, as Qwen3.5 does."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from engine.learning.adapter import load_adapter, save_adapter
from engine.learning.network import Network
from engine.settings import LearningSettings

Settings = Callable[..., LearningSettings]
LAYERS = 4  # the last one has attention, the others have states
ATTENTION = {"last_block": ("q_proj", "o_proj"), "full": ("q_proj", "k_proj", "v_proj", "o_proj")}


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small one, without the weights that see."""
    from transformers import AutoConfig, AutoModelForCausalLM

    folder = tmp_path_factory.mktemp("seeing")
    text = {
        "vocab_size": 257,
        "hidden_size": 96,
        "intermediate_size": 128,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
    }
    language_model = AutoModelForCausalLM.from_config(AutoConfig.for_model("qwen3_5_text", **text))
    language_model.save_pretrained(folder)
    whole = AutoConfig.for_model("qwen3_5", text_config=text, vision_config={})
    whole.save_pretrained(folder)  # in the place of the language model's own
    return folder


def network(folder: Path, settings: LearningSettings, *, seed: int = 0) -> Network:
    return Network(weights=folder, settings=settings, seed=seed, device="cpu", dtype=torch.float32)


def mapper_of_vllm() -> Any:
    """Read how the class that vLLM builds Qwen3.5 on names weights; to import it takes more."""
    import vllm
    from vllm.model_executor.models.utils import WeightsMapper

    file = Path(vllm.__file__).parent / "model_executor" / "models" / "qwen3_vl.py"
    (made,) = (
        node.value
        for kind in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(kind, ast.ClassDef) and kind.name == "Qwen3VLForConditionalGeneration"
        for node in kind.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "hf_to_vllm_mapper"
    )
    return eval(ast.unparse(made), {"WeightsMapper": WeightsMapper})


@pytest.mark.parametrize("adapter", ["last_block", "full"])
def test_its_weights_have_the_names_that_vllm_maps_to_its_layers(
    seeing: Path, learning: Settings, tmp_path: Path, adapter: str
) -> None:
    from vllm.lora.utils import parse_fine_tuned_lora_name

    save_adapter(network(seeing, learning(adapter=adapter)).peft, tmp_path, weights=seeing)
    names = load_file(tmp_path / "adapter_model.safetensors")
    mapper = mapper_of_vllm().get_rename_mapper()
    adapted = {parse_fine_tuned_lora_name(name, mapper)[0] for name in names}
    last, layers = LAYERS - 1, "language_model.model.layers"
    blocks = range(LAYERS) if adapter == "full" else [last]
    expected = {f"{layers}.{last}.self_attn.{part}" for part in ATTENTION[adapter]}
    for part in ("gate_proj", "up_proj", "down_proj"):
        expected |= {f"{layers}.{block}.mlp.{part}" for block in blocks}
    assert adapted == expected


def test_its_weights_are_read_again(seeing: Path, learning: Settings, tmp_path: Path) -> None:
    one, other = (network(seeing, learning(), seed=seed) for seed in (0, 1))
    with torch.no_grad():
        for parameter in one.parameters:  # a new adapter's are 0 in one half
            parameter.normal_()
    save_adapter(one.peft, tmp_path, weights=seeing)
    load_adapter(other.peft, tmp_path)
    for here, there in zip(one.parameters, other.parameters, strict=True):
        assert torch.equal(here, there)
