"""The thread that steps the engine works on the stream on which the engine was built."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from stub_engine import StubEngine, stubbed_model

from engine import config
from engine.inference import Decoder, Sampling, compat, is_cpu_build
from engine.timeline import TIMELINE, Timeline

ONE = Sampling(temperature=1.0, seed=0, stop=(), max_tokens=4)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> StubEngine:
    """An engine on a GPU whose streams are names."""
    import torch
    import vllm.platforms
    from vllm.utils import torch_utils

    engine = StubEngine()

    def current_stream() -> SimpleNamespace:
        return SimpleNamespace(device=f"of {threading.current_thread().name}")

    compat.check("gpu")  # imports modules, which keep the platform that they find
    monkeypatch.setattr(type(vllm.platforms.current_platform), "is_cuda", lambda self: True)
    monkeypatch.setattr(torch_utils, "current_stream", current_stream)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: engine.note(f"device {device}"))
    monkeypatch.setattr(
        torch.cuda, "set_stream", lambda stream: engine.note(f"stream {stream.device}")
    )
    return engine


def test_the_decoder_enters_the_stream_before_anything_else(
    engine: StubEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = config.resolve([]).model
    model = stubbed_model(monkeypatch, engine, settings=settings, folder=tmp_path)
    assert engine.told == [("rpc _forget_main_stream", "MainThread")]
    engine.told.clear()
    rung = threading.Event()
    with (
        Timeline(tmp_path / TIMELINE) as timeline,
        Decoder(model=model, timeline=timeline, notify=rung.set) as decoder,
    ):
        for call in range(2):
            rung.clear()
            decoder.submit(
                call, iteration=0, token_ids=[1], sampling=[ONE], is_over=lambda text: False
            )
            assert rung.wait(60)
            assert len(decoder.completed()) == 1
    entered = ["device of MainThread", "stream of MainThread"]
    steps = ["add", "step"]
    assert engine.told == [(each, "decoder") for each in [*entered, *steps, *steps]]


def test_a_runner_finds_its_stream_anew(
    engine: StubEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runner = SimpleNamespace(main_stream="the default one")
    monkeypatch.setattr(
        engine, "collective_rpc", lambda method: method(SimpleNamespace(model_runner=runner))
    )
    stubbed_model(monkeypatch, engine, settings=config.resolve([]).model, folder=tmp_path)
    assert vars(runner) == {}


@pytest.mark.skipif(not is_cpu_build(), reason="a GPU has streams")
def test_a_cpu_has_no_streams(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    engine = StubEngine()
    settings = config.resolve([]).model
    model = stubbed_model(monkeypatch, engine, settings=settings, folder=tmp_path)
    list(model.fanout(token_ids=[1], sampling=[ONE]))
    assert engine.told == [("add", "MainThread"), ("step", "MainThread")]


def test_a_decoder_does_not_wait_five_milliseconds_for_the_gil(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = sys.getswitchinterval()
    settings = config.resolve([]).model
    model = stubbed_model(monkeypatch, StubEngine(), settings=settings, folder=tmp_path)
    try:
        sys.setswitchinterval(0.005)  # Python's own
        with Timeline(tmp_path / TIMELINE) as timeline, Decoder(model=model, timeline=timeline):
            assert sys.getswitchinterval() <= 1e-4
    finally:
        sys.setswitchinterval(before)
