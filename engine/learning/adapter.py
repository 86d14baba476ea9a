"""The adapter: which linear layers it changes, and its file in peft's format.

LoRA (Hu et al., arXiv 2106.09685): a linear layer's output gets ``scale * B A x`` added. B begins
at 0, so a new adapter is the model itself.

An adapter on the last block's queries, output and MLP changes no key and no value, because the
last block's K and V are made from what the blocks before it put out. So the KV cache of a prompt
stays right under every version.
"""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from engine.core import UserError
from engine.learning.trainable import check_trainable, takes_images
from engine.settings import LearningSettings

_WEIGHTS = "adapter_model.safetensors"
_KEEPING = ("q_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
_ALL = (*_KEEPING, "k_proj", "v_proj")
_ALPHA = 2  # times the rank: the usual scale
_ALONE = "base_model.model.model.layers."
_BESIDE_IMAGES = "base_model.model.model.language_model.layers."
"""How the names of weights begin, in a language model and in one that takes images besides.

The trainer has a language model in either case, transformers' class for causal models. vLLM has the
whole model, and maps the names that its own files have.
"""


def load_model(weights: Path, *, dtype: torch.dtype, device: str) -> Any:
    """Return a model in transformers' form that is not trained itself.

    Raises:
        UserError: its weights are quantised, or can't be read.
    """
    from transformers import AutoModelForCausalLM

    check_trainable(weights)
    try:
        model = AutoModelForCausalLM.from_pretrained(weights, dtype=dtype, local_files_only=True)
    except (OSError, ValueError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:300]
        raise UserError(
            f"the model in {weights} can't be trained: {reason}; give model.path a folder with "
            "weights in Hugging Face's layout, or learning=none"
        ) from error
    return model.to(device).eval().requires_grad_(False)


def attach(model: Any, settings: LearningSettings, *, seed: int) -> Any:
    """Return the model with a new adapter, whose parameters are in float32.

    Raises:
        UserError: the model has no layer that the adapter could change.
    """
    from peft import LoraConfig, get_peft_model

    blocks = int(model.config.num_hidden_layers)
    is_last = settings.adapter == "last_block"
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=_ALPHA * settings.rank,
        lora_dropout=0.0,
        target_modules=list(_KEEPING if is_last else _ALL),
        layers_to_transform=[blocks - 1] if is_last else None,
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            return get_peft_model(model, config)
        except ValueError as error:
            reason = " ".join(str(error).split())[:300]
            raise UserError(
                f"no adapter fits the model: {reason}; use learning=none or another model"
            ) from error


def save_adapter(model: Any, folder: Path, *, weights: Path) -> None:
    """Write the adapter's configuration and weights, as peft's and vLLM's readers take them.

    Args:
        model: with the adapter.
        folder: to write to.
        weights: the model's folder.
    """
    from peft import get_peft_model_state_dict

    model.peft_config["default"].save_pretrained(str(folder))
    state = get_peft_model_state_dict(model)
    if takes_images(weights):
        state = {name.replace(_ALONE, _BESIDE_IMAGES): each for name, each in state.items()}
    save_file(
        {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()},
        folder / _WEIGHTS,
        metadata={"format": "pt"},
    )


def load_adapter(model: Any, folder: Path) -> None:
    """Take an adapter's weights from a folder that `save_adapter` wrote.

    Raises:
        UserError: it can't be read, or is of another shape.
    """
    from peft import get_peft_model_state_dict, set_peft_model_state_dict

    try:
        found = load_file(folder / _WEIGHTS)
        state = {name.replace(_BESIDE_IMAGES, _ALONE): each for name, each in found.items()}
        loaded = set_peft_model_state_dict(model, state)
        if loaded.unexpected_keys or state.keys() != get_peft_model_state_dict(model).keys():
            raise RuntimeError("its weights are those of other layers")
    except (OSError, SafetensorError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise UserError(
            f"the adapter in {folder} can't be read: {reason}; use the settings it was made with"
        ) from error
