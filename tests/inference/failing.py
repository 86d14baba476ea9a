"""Faults in vLLM's engine: in place of a forward pass of the real one, an error.

The engine is left as an error there leaves it: requests are scheduled, and nothing came of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Fault = Callable[["Pass"], Exception | None]
"""Returns what a forward pass raises; None if it goes well."""


class Pass:
    """A forward pass of the model that is about to be made.

    Attributes:
        number: since the faults began, from 1.
        rows: requests in it.
        prompts: of the requests in it.
    """

    def __init__(self, number: int, prompts: dict[str, list[int]]) -> None:
        self.number = number
        self.rows = len(prompts)
        self.prompts = prompts.values()


class Faults:
    """Decides, pass by pass, whether the real engine makes it.

    Attributes:
        passes: made or not, since the faults began.
        failed: those that were not made.
    """

    def __init__(self, fault: Fault) -> None:
        self.passes = self.failed = 0
        self._fault = fault
        self._prompts: dict[str, list[int]] = {}

    def check(self, scheduled: Any) -> None:
        """Raise what the fault says."""
        for each in scheduled.scheduled_new_reqs:
            self._prompts[each.req_id] = list(each.prompt_token_ids)
        rows = {name: self._prompts[name] for name in scheduled.num_scheduled_tokens}
        if not rows:
            return
        self.passes += 1
        error = self._fault(Pass(self.passes, rows))
        if error is not None:
            self.failed += 1
            raise error


def inject(monkeypatch: pytest.MonkeyPatch, fault: Fault) -> Faults:
    """Have the engines of this process fail as ``fault`` says until the test ends."""
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    faults, real = Faults(fault), GPUModelRunner.execute_model

    def execute_model(self: Any, scheduler_output: Any, *rest: Any, **named: Any) -> Any:
        faults.check(scheduler_output)
        return real(self, scheduler_output, *rest, **named)

    monkeypatch.setattr(GPUModelRunner, "execute_model", execute_model)
    return faults


def at(*numbers: int) -> Fault:
    """Fail at the passes with these numbers."""
    return lambda each: RuntimeError("injected") if each.number in numbers else None
