"""Adapters in vLLM's running engine: versions of what the model learned, swapped while it decodes.

A version is a folder in peft's format, loaded under a name of its own; version 0 is the model
itself. A request keeps the version that it began with. vLLM holds the latest versions in slots,
and loads an older one again, from its folder, if a request still asks for it. If more versions are
asked for than there are slots, its scheduler lets requests wait.

``last_block`` adapts what the last block asks, puts out and makes of it: no key and no value
changes, so every version's prompts share the prefix cache with the model's own. ``full`` adapts all
linear layers; its prompts carry a salt by which the cache, and one outside the engine, keep each
version's keys and values apart.

Does not cover how the rows of a step are multiplied (``adapter_rows.py``), or how an adapter is
trained (``engine.learning``).
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from engine.core import UserError
from engine.inference import compat
from engine.inference.shape import count_layers
from engine.settings import LearningSettings

SLOTS = 3
"""Versions whose requests may be in a step: the latest, and those that end on an earlier one."""
_KEPT = 2 * SLOTS
"""Versions in memory, so that one which is asked for again need not be read."""
_LINEAR = ("qkv_proj", "o_proj", "gate_up_proj", "down_proj")
"""Linear layers of a block, as vLLM fuses them."""
_BLOCK = ("self_attn.qkv_proj", "self_attn.o_proj", "mlp.gate_up_proj", "mlp.down_proj")
_PREFIXES = ("model", "language_model.model")
"""Where vLLM has a model's layers; the second is that of models that take images."""
_PARTS: Mapping[str, tuple[str, ...]] = {
    "last_block": ("q_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
    "full": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
}
"""Layers of a block that an adapter may have weights for, as transformers names them."""
OWNED: Mapping[str, str] = dict.fromkeys(
    (
        "enable_lora",
        "max_loras",
        "max_cpu_loras",
        "max_lora_rank",
        "lora_dtype",
        "lora_target_modules",
        "fully_sharded_loras",
        "default_mm_loras",
        "logprobs_mode",
    ),
    "the model learns, see learning",
)
"""Fields of `vllm.EngineArgs` that can't be given where the model learns."""
_WEIGHTS = "adapter_model.safetensors"


def adapter_args(learning: LearningSettings, *, folder: Path, on_cpu: bool) -> dict[str, Any]:
    """Return arguments of vLLM's engine with room for adapters, and with log-probabilities.

    Args:
        learning: of a method but ``none``.
        folder: the model's.
        on_cpu: whether the engine is to run there.
    """
    import torch

    targets = list(_LINEAR)
    if learning.adapter == "last_block":  # others need not pay for it
        last = count_layers(folder) - 1
        targets = [f"{prefix}.layers.{last}.{name}" for prefix in _PREFIXES for name in _BLOCK]
    return {
        "enable_lora": True,
        "max_loras": SLOTS,
        "max_cpu_loras": _KEPT,
        "max_lora_rank": learning.rank,
        "lora_target_modules": targets,
        # A small product is faster in float32 there, and the adapter is not rounded.
        "lora_dtype": torch.float32 if on_cpu else "auto",
        "logprobs_mode": "processed_logits" if on_cpu else "processed_logprobs",  # logprobs.py
    }


class Adapters:
    """The versions that the engine knows; only the thread that steps it may call."""

    def __init__(self, engine: Any, *, learning: LearningSettings, folder: Path) -> None:
        """Check that the engine has taken in what is to be adapted.

        Args:
            engine: vLLM's, made with `adapter_args`.
            learning: of a method but ``none``.
            folder: the model's.

        Raises:
            UserError: the model's layers are not those that are adapted.
        """
        self._engine = engine
        self._kind = learning.adapter
        self._last = count_layers(folder) - 1
        self._known: dict[int, tuple[Any, str | None]] = {}
        (adapted,) = engine.collective_rpc(_adapted)
        names = _BLOCK if self._kind == "last_block" else _LINEAR
        for name in names:
            if not any(each.endswith(f".{name}") for each in adapted):
                raise UserError(
                    f"learning.adapter={self._kind} does not fit the model in {folder}: vLLM finds "
                    f"no {name} to adapt (experts and layers of state are not adapted); give "
                    "learning=none or another model"
                )

    def adopt(self, version: int, folder: Path) -> None:
        """Load a version, between two steps.

        Raises:
            ValueError: the folder holds no adapter for this engine, or the version is 0 or another
                folder's.
            RuntimeError: the device failed.
        """
        import torch
        from vllm.lora.request import LoRARequest

        path = folder / _WEIGHTS
        known = self._known.get(version)
        if version < 1 or (known is not None and known[0].path != str(folder)):
            raise ValueError(f"version {version} of the adapter is taken")
        try:
            with safe_open(path, framework="pt") as weights:
                for name in weights.keys():  # noqa: SIM118 (it is no mapping)
                    self._check_fits(name)
            request = LoRARequest(f"adapter-{version}", version, str(folder))
            self._engine.add_lora(request)
            (left_out,) = self._engine.collective_rpc(_left_out, args=(version,))
            if left_out:
                self._engine.remove_lora(version)
                raise ValueError(
                    f"vLLM has no layer {left_out[0]} to adapt, so it would leave that out"
                )
        except (torch.AcceleratorError, torch.OutOfMemoryError):
            raise  # of the device, not of the file
        except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
            said = " ".join(str(error).split())[:300]
            raise ValueError(f"the adapter in {folder} can't be loaded: {said}") from error
        self._known[version] = request, _salt(path) if self._kind == "full" else None

    def of(self, version: int) -> tuple[Any, str | None]:
        """Return vLLM's name of a version, None for the model itself, and its prompts' salt.

        Raises:
            ValueError: the version was not adopted.
        """
        if not version:
            return None, None
        if version not in self._known:
            raise ValueError(f"version {version} of the adapter was not loaded")
        return self._known[version]

    def _check_fits(self, name: str) -> None:
        """Check the name of a weight, as far as it says where in a block the weight belongs."""
        found = re.search(r"\.layers\.(\d+)\.(?:self_attn|mlp)\.(\w+)\.lora_[AB]\.weight$", name)
        fits = found is not None and found[2] in _PARTS[self._kind]
        if not fits or (self._kind == "last_block" and found and int(found[1]) != self._last):
            raise ValueError(f"it has {name}, which learning.adapter={self._kind} does not adapt")


def check_adapters(*, on_cpu: bool, dtype: str) -> None:
    """Check that the installed vLLM is one whose adapters the engine can use, and prepare it.

    Args:
        on_cpu: whether the engine is to run there.
        dtype: the format of the model's numbers.

    Raises:
        UserError: it is not, or its adapters take no such numbers.
    """
    compat.check("adapters")
    if dtype == "float32" and not on_cpu:
        raise UserError(
            "model.dtype=float32 leaves no room for learning on a GPU, where vLLM's adapters take "
            "numbers of 16 bits; leave it out, or give learning=none"
        )
    if on_cpu:
        compat.check("cpu_adapters")
        from vllm.platforms import current_platform

        from engine.inference import adapter_rows

        # vLLM asks its platform for the class, by name.
        name = f"{adapter_rows.__name__}.{adapter_rows.AdapterRows.__name__}"
        type(current_platform).get_punica_wrapper = classmethod(lambda cls: name)


def _adapted(worker: Any) -> list[str]:
    """Return the names of the layers that take adapters."""
    from vllm.lora.layers import BaseLayerWithLoRA

    modules = worker.get_model().named_modules()
    return [name for name, module in modules if isinstance(module, BaseLayerWithLoRA)]


def _left_out(worker: Any, version: int) -> list[str]:
    """Return the layers of a version that the model does not have: vLLM passes over them silently.

    Its own check looks at the ends of the names alone. By now it has them as its model's names.
    """
    manager = worker.get_model().lora_manager
    return [name for name in manager.get_adapter(version).loras if name not in manager.modules]


def _salt(path: Path) -> str:
    """Return what no other adapter has, of this run or of one that shares a cache with it."""
    stat = path.stat()
    named = f"{path.resolve()} {stat.st_size} {stat.st_mtime_ns}"
    return f"adapter-{hashlib.sha256(named.encode()).hexdigest()[:16]}"
