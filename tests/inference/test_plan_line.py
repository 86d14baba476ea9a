"""A run on a GPU says where the memory goes before it loads a model."""

from __future__ import annotations

import logging
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine import config, parts
from engine.core import UserError
from engine.inference.engine_options import plan_of
from engine.inference.memory_plan import plan_memory
from engine.inference.shape import read_shape

DATA = Path(__file__).parent / "data"


def said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, memory_gb: int
) -> list[str]:
    folder = DATA / "qwen3_coder_30b"
    plan = plan_memory(
        read_shape(folder), memory=memory_gb << 30, share=0.9, sequences=256, block_size=64
    )

    def loaded(**_: Any) -> str:
        caplog.records.append(logging.makeLogRecord({"msg": "loaded"}))
        return "model"

    monkeypatch.setattr(parts, "plan_of", lambda settings, weights, learning: plan)
    monkeypatch.setattr(parts, "LanguageModel", loaded)
    monkeypatch.setattr(parts, "is_cpu_build", lambda: False)
    # The folder has a shape and neither weights nor words.
    monkeypatch.setattr(parts, "why_no_instructions", lambda weights: None)
    settings = config.resolve(["model=qwen3_coder_30b", f"model.path={folder}"])
    with caplog.at_level(logging.INFO), ThreadPoolExecutor() as syntax:
        assert load(settings, syntax) == "model"
    return caplog.messages


def load(settings: Any, syntax: Executor) -> Any:
    with parts.model_loader(settings, syntax=syntax) as loader:
        return loader()


def test_the_plan_is_printed_before_anything_is_loaded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first, plan, last = said(monkeypatch, caplog, memory_gb=79)
    assert first == "loading qwen3_coder_30b; the first time, kernels are compiled for minutes"
    assert last == "loaded"
    assert plan == (
        "memory plan: 71.1 GiB of the GPU's 79.0 GiB: weights 29.0 GiB, working memory 4.0 GiB, "
        "KV 38.1 GiB (415,808 tokens at 96 KiB)"
    )


@pytest.mark.parametrize("memory_gb", [24, 39])
def test_a_model_that_has_too_little_room_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, memory_gb: int
) -> None:
    _, plan, warning, _ = said(monkeypatch, caplog, memory_gb=memory_gb)
    assert plan.startswith("memory plan: ")
    assert "model.gpu_memory_utilization" in warning


def test_a_trainer_whose_weights_do_not_fit_is_refused_before_anything_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = DATA / "qwen3_5_4b"
    chosen = ["model=qwen3_5_4b", f"model.path={folder}", "learning=grpo"]
    whole = ["model.top_p=1", "model.top_k=0"]
    fits, small = (
        config.resolve([*chosen, *whole, *more]) for more in ([], ["learning.memory_gb=8"])
    )
    said = (
        r"learning\.memory_gb=8 is too little: the trainer's copy of the model takes 7\.\d GiB, "
        r"and computing with it about 4\.0 GiB more; give 12 or more"
    )
    with ThreadPoolExecutor() as syntax:
        with parts.model_loader(small, syntax=syntax):
            pass  # a trainer on a CPU has all of its memory
        monkeypatch.setattr(parts, "is_cpu_build", lambda: False)
        with pytest.raises(UserError, match=said), parts.model_loader(small, syntax=syntax):
            pass
        with parts.model_loader(fits, syntax=syntax):
            pass
        apart = replace(small, cluster=replace(small.cluster, kind="ray"))
        with parts.model_loader(apart, syntax=syntax):
            pass  # a trainer elsewhere is not this one's to check


def test_a_cpu_has_no_plan() -> None:
    assert plan_of(config.resolve([]).model, DATA / "llama_like") is None
