"""``model.engine``: arguments of vLLM's engine that the user gives, checked against its fields.

They are given to the engine last, so they take the place of what this engine chose. Refused are a
key that `vllm.EngineArgs` has no field for, and those on which something else here relies. Does not
cover the values, which vLLM checks itself.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

from engine.core import UserError
from engine.inference.environment import is_cpu_build

OWNED: Mapping[str, str] = {
    "model": "give model.path",
    "seed": "give seed",
    "max_model_len": "give model.max_model_len, which prompts keep to",
    "gpu_memory_utilization": "give model.gpu_memory_utilization",
    "kv_transfer_config": "give cache=lmcache",
    "enable_prefix_caching": "the children of a prompt share it in the prefix cache",
    "disable_log_stats": "a run's hit rate is read from these statistics",
    "skip_tokenizer_init": "prompts are made with the tokenizer",
}
"""Fields that can't be given, and what to do instead, or why."""
DRAFTS = ("speculative_config", "spec_method", "spec_model", "spec_tokens")
"""Fields for drafts of tokens."""


def check_engine_options(options: Mapping[str, Any]) -> None:
    """Check that each key is a field of `vllm.EngineArgs` that is the user's to give.

    Raises:
        UserError: one is not; the message names it.
    """
    from vllm import EngineArgs

    fields = [field.name for field in dataclasses.fields(EngineArgs)]
    for key in options:
        if key not in fields:
            close = difflib.get_close_matches(key, sorted({*fields} - {*OWNED}), n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UserError(f"model.engine.{key}: vLLM's EngineArgs has no such field{hint}")
        if key in OWNED:
            raise UserError(f"model.engine.{key} can't be given: {OWNED[key]}")
        if key in DRAFTS and is_cpu_build():
            # What stands in for a Triton kernel there leaves the temperatures out (vLLM 0.32,
            # vllm/utils/cpu_triton_utils.py), so that sampled tokens are noise.
            raise UserError(f"model.engine.{key} can't be given: vLLM can't draft on a CPU")
