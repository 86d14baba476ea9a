"""``python -m engine.run`` with a fault in its engine: ``python faulty.py FAULT PASS ARGUMENT...``.

From the forward pass of that number on, of those that the engine is to make:

``raise``: that one raises.
``memory``: each raises that memory is out which has more than two requests.
``poison``: each raises which has a request with the prompt that the newest one had then.
``hang``: that one never ends.
``always``: each raises.

The process that such a run goes on in by itself has no fault.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numba  # before the engine: without a repair, vLLM can't start after it

from engine.inference import is_cpu_build, prepare

assert numba.__version__


def faulty(fault: str, first: int) -> Callable[[dict[str, list[int]]], None]:
    """Return what is called before each pass with the prompts of its requests, by request."""
    passes = 0
    poison: list[int] = []

    def check(prompts: dict[str, list[int]]) -> None:
        nonlocal passes, poison
        passes += 1
        if passes < first:
            return
        import torch

        if fault == "always" or (fault == "raise" and passes == first):
            raise RuntimeError("injected")
        if fault == "hang" and passes == first:
            threading.Event().wait()
        if fault == "memory" and len(prompts) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
        if fault == "poison":
            poison = poison or [*prompts.values()][-1]
            if poison in prompts.values():
                raise RuntimeError("poisoned")

    return check


def inject(check: Callable[[dict[str, list[int]]], None]) -> None:
    """Have ``check`` called before each pass."""
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    prompts: dict[str, list[int]] = {}
    real = GPUModelRunner.execute_model

    def execute_model(self: Any, scheduler_output: Any, *rest: Any, **named: Any) -> Any:
        for each in scheduler_output.scheduled_new_reqs:
            prompts[each.req_id] = list(each.prompt_token_ids)
        if scheduler_output.num_scheduled_tokens:
            check({name: prompts[name] for name in scheduler_output.num_scheduled_tokens})
        return real(self, scheduler_output, *rest, **named)

    GPUModelRunner.execute_model = execute_model


if __name__ == "__main__":
    assert is_cpu_build()
    prepare(threads=None, kv_cache_gb=1)
    inject(faulty(sys.argv[1], int(sys.argv[2])))
    from engine.run import main

    sys.exit(main(sys.argv[3:]))
