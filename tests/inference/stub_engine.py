"""A language model whose vLLM engine is a stand-in that notes what it is told.

What is asked of `engine.inference.LanguageModel` here needs no weights: which thread and stream the
engine is stepped in, what a request looks like, and how a chat template is used.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.inference import LanguageModel, llm
from engine.settings import ModelSettings


@dataclass(kw_only=True)
class StubEngine:
    """Stands in for vLLM's `LLMEngine`: every request ends with its first step.

    Attributes:
        tokenizer: the model's.
        resets_needed: how often the prefix cache is asked for until it can be emptied.
        told: what was called, and in which thread.
        params: of each request.
        logprob: of each request's only token; None for none.
    """

    tokenizer: Any = None
    resets_needed: int = 0
    told: list[tuple[str, str]] = field(default_factory=list)
    params: dict[str, Any] = field(default_factory=dict)
    logprob: float | None = None

    def __post_init__(self) -> None:
        scheduler = SimpleNamespace(hash_block_size=16)
        core = SimpleNamespace(request_block_hasher=None, scheduler=scheduler)
        self.engine_core = SimpleNamespace(engine_core=core, shutdown=lambda: self.note("shutdown"))
        self.running: list[str] = []

    def note(self, what: str) -> None:
        self.told.append((what, threading.current_thread().name))

    def get_tokenizer(self) -> Any:
        return self.tokenizer

    def add_request(
        self, request_id: str, prompt: Any, params: Any, *, lora_request: Any = None
    ) -> None:
        self.note("add")
        self.params[request_id] = params
        self.running.append(request_id)

    def abort_request(self, request_ids: list[str]) -> None:
        self.running = [each for each in self.running if each not in request_ids]

    def get_num_unfinished_requests(self) -> int:
        return len(self.running)

    def step(self) -> list[Any]:
        self.note("step")
        flat = None if self.logprob is None else SimpleNamespace(logprobs=[self.logprob])
        text = SimpleNamespace(text="done", token_ids=[1], finish_reason="stop", logprobs=flat)
        outputs = [
            SimpleNamespace(request_id=each, finished=True, outputs=[text], num_cached_tokens=0)
            for each in self.running
        ]
        self.running = []
        self.resets_needed -= 1
        return outputs

    def reset_prefix_cache(self) -> bool:
        return self.resets_needed <= 0

    def collective_rpc(self, method: Callable[[Any], object]) -> None:
        self.note(f"rpc {method.__name__}")


def stubbed_model(
    monkeypatch: pytest.MonkeyPatch, engine: StubEngine, *, settings: ModelSettings, folder: Path
) -> LanguageModel:
    """Return a language model with a stand-in for its engine."""
    monkeypatch.setattr(llm, "engine_args", lambda **_: SimpleNamespace())
    monkeypatch.setattr(llm, "_load", lambda args, counter: engine)
    return LanguageModel(settings=settings, folder=folder, seed=0)
