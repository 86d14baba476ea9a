"""What a request and a conversation are told of the model's settings, and emptying the cache."""

from __future__ import annotations

import json
import math
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stub_engine import StubEngine, stubbed_model
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from engine import config
from engine.inference import Sampling
from engine.settings import ModelSettings

SECONDS = 240.0
ONE = Sampling(temperature=1.3, seed=0, stop=(), max_tokens=4)
# As templates of models that think do: only an explicit no ends the thoughts at once.
TEMPLATE = """\
{%- for message in messages -%}
<|{{ message.role }}|>{{ message.content }}<|end|>
{%- endfor -%}
{%- if add_generation_prompt -%}
<|assistant|><think>{{ '</think>' if enable_thinking is defined and not enable_thinking }}
{%- endif -%}"""


@pytest.fixture
def settings() -> ModelSettings:
    return config.resolve([]).model


def params(monkeypatch: pytest.MonkeyPatch, settings: ModelSettings, folder: Path) -> Any:
    engine = StubEngine()
    model = stubbed_model(monkeypatch, engine, settings=settings, folder=folder)
    list(model.fanout(token_ids=[1], sampling=[ONE]))
    (only,) = engine.params.values()
    return only


def test_every_request_is_truncated_as_the_settings_say(
    monkeypatch: pytest.MonkeyPatch, settings: ModelSettings, tmp_path: Path
) -> None:
    plain = params(monkeypatch, settings, tmp_path)
    assert (plain.top_p, plain.top_k, plain.min_p, plain.temperature) == (1.0, 0, 0.0, 1.3)
    cut = replace(settings, top_p=0.9, top_k=20, min_p=0.05)
    given = params(monkeypatch, cut, tmp_path)
    assert (given.top_p, given.top_k, given.min_p) == (0.9, 20, 0.05)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (json.dumps({"top_p": 0.8, "top_k": 40, "temperature": 0.7}), (0.8, 40)),
        ("{}", (1.0, 0)),
        ("[1]", (1.0, 0)),
        ("{", (1.0, 0)),
        ('{"top_p": null, "top_k": "many"}', (1.0, 0)),
        (None, (1.0, 0)),
    ],
)
def test_what_is_not_given_is_the_models_own(
    monkeypatch: pytest.MonkeyPatch,
    settings: ModelSettings,
    tmp_path: Path,
    text: str | None,
    expected: tuple[float, int],
) -> None:
    if text is not None:
        (tmp_path / "generation_config.json").write_text(text)
    made = params(monkeypatch, replace(settings, top_p=None, top_k=None), tmp_path)
    assert (made.top_p, made.top_k) == expected
    half = params(monkeypatch, replace(settings, top_p=None, top_k=3), tmp_path)
    assert (half.top_p, half.top_k) == (expected[0], 3)


@pytest.mark.parametrize(
    ("found", "expected"), [(-0.5, (-0.5,)), (None, ()), (math.nan, ()), (-math.inf, ())]
)
def test_log_probabilities_that_are_not_finite_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
    settings: ModelSettings,
    tmp_path: Path,
    found: float | None,
    expected: tuple[float, ...],
) -> None:
    engine = StubEngine(logprob=found)
    model = stubbed_model(monkeypatch, engine, settings=settings, folder=tmp_path)
    (only,) = model.fanout(token_ids=[1], sampling=[ONE])
    assert only.token_ids == (1,) and only.logprobs == expected


@pytest.mark.parametrize("thinking", [False, True])
def test_a_model_thinks_only_if_it_is_told_to(
    monkeypatch: pytest.MonkeyPatch, settings: ModelSettings, tmp_path: Path, thinking: bool
) -> None:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel({"a": 0}, "a")))
    tokenizer.chat_template = TEMPLATE
    model = stubbed_model(
        monkeypatch,
        StubEngine(tokenizer=tokenizer),
        settings=replace(settings, thinking=thinking),
        folder=tmp_path,
    )
    frame = model.chat_frame(system="be brief")
    assert frame.opening == "<|system|>be brief<|end|><|user|>"
    assert frame.closing == f"<|end|><|assistant|><think>{'' if thinking else '</think>'}"


def test_a_model_without_a_template_gets_the_messages_as_paragraphs(
    monkeypatch: pytest.MonkeyPatch, settings: ModelSettings, tmp_path: Path
) -> None:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel({"a": 0}, "a")))
    model = stubbed_model(
        monkeypatch, StubEngine(tokenizer=tokenizer), settings=settings, folder=tmp_path
    )
    frame = model.chat_frame(system="be brief")
    assert (frame.opening, frame.closing, frame.turn) == ("be brief\n\n", "\n\n", "\n\n")


def steps_of(engine: StubEngine) -> list[str]:
    """Return what an engine was told, but for a GPU's stream, which is asked for at the start."""
    return [what for what, _ in engine.told if not what.startswith("rpc")]


def test_the_cache_is_emptied_once_a_step_ahead_has_let_go_of_it(
    monkeypatch: pytest.MonkeyPatch, settings: ModelSettings, tmp_path: Path
) -> None:
    engine = StubEngine(resets_needed=2)
    stubbed_model(monkeypatch, engine, settings=settings, folder=tmp_path).forget()
    assert steps_of(engine) == ["step", "step"]


def test_a_cache_that_a_request_holds_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, settings: ModelSettings, tmp_path: Path
) -> None:
    engine = StubEngine(resets_needed=1)
    model = stubbed_model(monkeypatch, engine, settings=settings, folder=tmp_path)
    fan = model.fanout(token_ids=[1], sampling=[ONE])
    with pytest.raises(RuntimeError, match="in use"):
        model.forget()
    assert fan.indices == (0,)


class BlockedEngine(StubEngine):
    """Is in its step until it is told to go on."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.is_in_step, self.go = threading.Event(), threading.Event()

    def step(self) -> list[Any]:
        self.is_in_step.set()
        assert self.go.wait(SECONDS)
        return super().step()


def test_an_engine_is_not_shut_down_under_its_step(
    monkeypatch: pytest.MonkeyPatch, settings: ModelSettings, tmp_path: Path
) -> None:
    engine = BlockedEngine()
    model = stubbed_model(monkeypatch, engine, settings=settings, folder=tmp_path)
    model.fanout(token_ids=[1], sampling=[ONE])
    stepping = threading.Thread(target=model.step)
    stepping.start()
    assert engine.is_in_step.wait(SECONDS)
    model.close()  # as at a second Ctrl-C
    engine.go.set()
    stepping.join(SECONDS)
    model.close()
    assert steps_of(engine) == ["add", "step", "shutdown"]
