"""On ``PYTHONPATH``, gives the first process that loads vLLM's engine a fault, whoever starts it.

``BROOD_TEST_FAULT=FAULT:PASS:FILE``: FAULT and PASS are those of ``faulty.py``; the process that
makes FILE has the fault, and those after it have none.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

_ENGINE = "vllm.v1.worker.gpu_model_runner"


class Finder:
    """Finds the module of the engine, and injects the fault once it is loaded."""

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        """Return the module's own spec, with a loader that injects; None for any other module."""
        if name != _ENGINE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.loader is not None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            give_fault()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def give_fault() -> None:
    """Inject the fault, if no other process has it."""
    fault, first, file = os.environ["BROOD_TEST_FAULT"].split(":")
    try:
        Path(file).touch(exist_ok=False)
    except FileExistsError:
        return
    from faulty import faulty, inject

    inject(faulty(fault, int(first)))


sys.meta_path.insert(0, Finder())
