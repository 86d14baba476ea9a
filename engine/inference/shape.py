"""What a model's ``config.json`` says of the memory that it takes and the options that it needs.

Covers: the sizes of KV, state and weights, and whether a model mixes attention with layers of
state (a *hybrid*) or takes images. Nothing is imported and nothing loaded, but where there are no
weights to look at: then the model's parameters are counted on PyTorch's ``meta`` device. Does not
cover what follows from it: ``limits.py`` and ``memory_plan.py``.

Sizes are those of vLLM's default formats: KV in the model's own 16 bits, recurrent state as the
configuration has it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.core import UserError

_HALF = 2  # bytes of a number of bfloat16 or float16
_ALIGNMENT = 16
"""Tokens of which a block of attention is a multiple, on every GPU backend of vLLM's."""
_STATES = 2
"""Copies of its state that a request holds: the one it writes, and the last one at a block's end
(vLLM's ``mamba_cache_mode=align``)."""
_BITS = {"fp8": 8, "fbgemm_fp8": 8, "awq": 4, "gptq": 4, "mxfp4": 4}  # of a quantised weight


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelShape:
    """Sizes of a model, in bytes.

    Attributes:
        weights: of all files of weights, or of all parameters where there are none.
        attention_layers: layers that keep KV of each token.
        kv_of_layer: KV of one token in one of them.
        kv_heads: into which it can be cut: 1 for one vector a token.
        state_layers: layers that keep a state of each request instead.
        state_of_layer: one state in one of them; None if its size is not known here.
        takes_images: whether there is an encoder besides the language model.
    """

    weights: int
    attention_layers: int
    kv_of_layer: int
    kv_heads: int
    state_layers: int
    state_of_layer: int | None
    takes_images: bool

    @property
    def is_hybrid(self) -> bool:
        """Whether some layers keep a state."""
        return self.state_layers > 0

    @property
    def kv_per_token(self) -> int:
        """KV of one token in all layers."""
        return self.attention_layers * self.kv_of_layer

    def on_each_of(self, ranks: int) -> "ModelShape":
        """Return what one of ``ranks`` processes has, each with a GPU, that share every layer.

        Weights and heads are cut (tensor parallelism, Shoeybi et al., arXiv 1909.08053, section 3);
        where there are fewer heads of KV than processes, some have the same one.
        """
        state = self.state_of_layer
        return replace(
            self,
            weights=self.weights // ranks,
            kv_of_layer=self.kv_of_layer // self.kv_heads * -(-self.kv_heads // ranks),
            kv_heads=-(-self.kv_heads // ranks),
            state_of_layer=None if state is None else state // ranks,
        )

    @property
    def aligned_block(self) -> int | None:
        """Tokens of a block as vLLM aligns it: the KV of a layer is no smaller than its state.

        None where blocks are not aligned, or a state's size is not known.
        """
        if not self.state_of_layer or not self.kv_of_layer:
            return None
        return -(-self.state_of_layer // (self.kv_of_layer * _ALIGNMENT)) * _ALIGNMENT

    @property
    def state_per_request(self) -> int:
        """State of one request in all layers, padded to whole blocks; 0 if it is not known."""
        return self.state_layers * _STATES * (self.aligned_block or 0) * self.kv_of_layer


def read_shape(folder: Path) -> ModelShape:
    """Return the sizes of the model in a folder in Hugging Face's layout.

    Raises:
        UserError: its ``config.json`` is not there, is no JSON, or lacks what every model has.
    """
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        text = config.get("text_config") or config
        attention, states = _layers(text)
        return ModelShape(
            weights=_weights(folder, config),
            attention_layers=attention,
            kv_of_layer=_kv_of_layer(text),
            kv_heads=_kv_heads(text),
            state_layers=states,
            state_of_layer=_state_of_layer(text) if states else 0,
            takes_images="vision_config" in config,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise UserError(f"{path} can't be read as a model's configuration: {said}") from error


def parameters(folder: Path) -> float | None:
    """Return about how many parameters the model in a folder has, from the bytes of its weights.

    None where they are quantised in a way that is not known here.

    Raises:
        UserError: as `read_shape`.
    """
    weights = read_shape(folder).weights
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if quantised := config.get("quantization_config"):
        bits = _bits_of(quantised)
        return None if bits is None else weights * 8 / bits
    dtype = str(config.get("dtype") or config.get("torch_dtype"))
    return weights * 8 / (32 if dtype.endswith("float32") else 16)


def _bits_of(quantised: Mapping[str, Any]) -> int | None:
    """Return the bits of a quantised weight; None if they are not known."""
    method = str(quantised.get("quant_method"))
    if method == "compressed-tensors":
        try:
            groups = quantised["config_groups"].values()
            return max(int(each["weights"]["num_bits"]) for each in groups)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
    if method == "bitsandbytes":
        return 4 if quantised.get("load_in_4bit") else 8
    return _BITS.get(method)


def count_layers(folder: Path) -> int:
    """Return how many blocks the model in a folder has.

    Raises:
        UserError: as `read_shape`.
    """
    shape = read_shape(folder)
    return shape.attention_layers + shape.state_layers


def _layers(text: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many layers keep KV, and how many a state."""
    count = int(text["num_hidden_layers"])
    types = text.get("layer_types")
    if types is None and (every := text.get("full_attention_interval")):
        return count // int(every), count - count // int(every)
    attention = count if types is None else sum(map(_keeps_kv, types))
    return attention, count - attention


def _keeps_kv(kind: str) -> bool:
    """Whether a layer of this name in ``layer_types`` is one of attention.

    Configurations have many such names (``full_attention``, ``attention``, ``indexed_attention``),
    and ``hybrid`` for a layer that is of both kinds.
    """
    return kind == "hybrid" or ("attention" in kind and kind != "linear_attention")


def _kv_of_layer(text: Mapping[str, Any]) -> int:
    if rank := text.get("kv_lora_rank"):  # multi-head latent attention keeps one vector a token
        return _HALF * (int(rank) + int(text["qk_rope_head_dim"]))
    heads = int(text["num_attention_heads"])
    head_size = int(text.get("head_dim") or int(text["hidden_size"]) // heads)
    return 2 * _HALF * _kv_heads(text) * head_size


def _kv_heads(text: Mapping[str, Any]) -> int:
    if text.get("kv_lora_rank"):
        return 1
    return int(text.get("num_key_value_heads") or text["num_attention_heads"])


def _state_of_layer(text: Mapping[str, Any]) -> int | None:
    """Return the bytes of a gated delta net's state; None for a layer of another kind.

    It is a convolution's last inputs, and a matrix for each head (Yang et al., arXiv 2412.06464).
    """
    if "linear_num_value_heads" not in text:
        return None
    values, size = int(text["linear_num_value_heads"]), int(text["linear_value_head_dim"])
    keys, key_size = int(text["linear_num_key_heads"]), int(text["linear_key_head_dim"])
    channels = 2 * keys * key_size + values * size
    convolution = (int(text["linear_conv_kernel_dim"]) - 1) * channels * _HALF
    is_half = text.get("mamba_ssm_dtype") in ("bfloat16", "float16")
    return convolution + values * size * key_size * (_HALF if is_half else 4)


def _weights(folder: Path, config: Mapping[str, Any]) -> int:
    for pattern in ("*.safetensors", "*.bin"):
        # Some folders have the same weights a second time, as one file that vLLM leaves out.
        files = (each for each in folder.glob(pattern) if not each.name.startswith("consolidated"))
        if found := sum(path.stat().st_size for path in files):
            return found
    return _estimated_weights(folder, config)


def _estimated_weights(folder: Path, config: Mapping[str, Any]) -> int:
    """Return the bytes of the language model's parameters, counted without making them."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    described = AutoConfig.from_pretrained(folder, local_files_only=True).get_text_config()
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(described)
    quantised = config.get("quantization_config") or {}
    bits = _bits_of(quantised) or 16
    total = 0
    for name, parameter in model.named_parameters():
        # Vocabularies, norms and routers keep the model's own format.
        is_plain = parameter.ndim < 2 or "embed" in name or "lm_head" in name or ".gate." in name
        total += parameter.numel() * (16 if is_plain else bits) // 8
    return total
