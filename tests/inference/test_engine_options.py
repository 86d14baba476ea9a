"""``model.engine`` against vLLM's own `EngineArgs`."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

import numba  # before the engine: without a repair, vLLM can't start after it
import pytest

from engine import config
from engine.core import UserError
from engine.inference import (
    MOST_AT_ONCE,
    LanguageModel,
    find_weights,
    is_cpu_build,
    most_at_once,
    prepare,
)
from engine.inference.engine_options import (
    DRAFTS,
    OWNED,
    check_engine_options,
    chunk_tokens,
    engine_args,
    told_what_to_change,
)
from engine.inference.limits import MOST_ON_GPU
from engine.settings import ModelSettings

MOST = MOST_AT_ONCE if is_cpu_build() else MOST_ON_GPU


@pytest.fixture(scope="module")
def settings() -> ModelSettings:
    assert numba.__version__
    settings = config.resolve(["model=smollm2", "model.max_model_len=1024"]).model
    prepare(threads=settings.threads, kv_cache_gb=settings.kv_cache_gb)
    return settings


def arguments(settings: ModelSettings, **engine: Any) -> dict[str, Any]:
    folder = str(find_weights(settings))
    made = engine_args(settings=replace(settings, engine=engine), folder=folder, seed=3)
    return {field.name: getattr(made, field.name) for field in dataclasses.fields(made)}


def test_what_is_given_takes_the_place_of_what_was_chosen(settings: ModelSettings) -> None:
    chosen = arguments(settings)
    given = arguments(settings, max_logprobs=5, load_format="dummy")
    assert chosen["max_num_seqs"] == MOST
    assert chosen["max_logprobs"] != 5
    assert given == {**chosen, "max_logprobs": 5, "load_format": "dummy"}


def test_limits_that_are_given_reach_vllm(settings: ModelSettings) -> None:
    limits = {"max_num_seqs": 7, "max_num_batched_tokens": 4096, "block_size": 64}
    assert arguments(replace(settings, **limits)) == {**arguments(settings), **limits}


def test_the_loop_keeps_as_many_children_at_the_model(settings: ModelSettings) -> None:
    assert most_at_once(settings) == MOST
    assert most_at_once(replace(settings, max_num_seqs=128)) == 128


def test_a_package_that_is_missing_is_a_line(settings: ModelSettings) -> None:
    with (
        pytest.raises(UserError) as refused,
        told_what_to_change(settings, "/models/one"),
    ):
        raise ModuleNotFoundError("No module named 'torchvision'")
    assert str(refused.value) == (
        "model '/models/one' can't be loaded: No module named 'torchvision'; run "
        "`make environment`, or install brood[cpu] or brood[cuda]"
    )


def test_an_unknown_key_is_refused_with_the_one_that_is_meant(settings: ModelSettings) -> None:
    with pytest.raises(UserError) as refused:
        arguments(settings, max_logprob=5)
    assert str(refused.value) == (
        "model.engine.max_logprob: vLLM's EngineArgs has no such field; did you mean max_logprobs?"
    )
    with pytest.raises(UserError, match=r"engine\.zzz: vLLM's EngineArgs has no such field$"):
        check_engine_options({"zzz": 1})


@pytest.mark.parametrize("key", OWNED)
def test_what_something_else_relies_on_is_refused(settings: ModelSettings, key: str) -> None:
    assert key in arguments(settings)  # a field of vLLM's, or nobody could give it
    with pytest.raises(UserError) as refused:
        check_engine_options({key: arguments(settings)[key]})
    assert str(refused.value) == f"model.engine.{key} can't be given: {OWNED[key]}"


@pytest.mark.parametrize("key", DRAFTS)
def test_drafts_are_refused_on_a_cpu(settings: ModelSettings, key: str) -> None:
    assert key in arguments(settings)
    if not is_cpu_build():
        pytest.skip("they may be had here")
    with pytest.raises(UserError, match=f"model.engine.{key} can't be given: .* on a CPU"):
        check_engine_options({key: None})


@pytest.mark.parametrize(
    ("key", "value"),
    [("max_logprobs", "many"), ("kv_cache_dtype", "float7"), ("compilation_config", 1.5)],
)
def test_a_value_that_vllm_refuses_is_said_in_one_line(
    settings: ModelSettings, key: str, value: object
) -> None:
    engine = replace(settings, engine={key: value})
    with pytest.raises(UserError, match="can't be loaded") as refused:
        LanguageModel(settings=engine, folder=find_weights(settings), seed=0)
    assert str(refused.value).endswith(f"and see model.engine: {key}")
    assert "\n" not in str(refused.value)


def test_a_build_for_cuda_that_sees_no_gpu_says_so(
    monkeypatch: pytest.MonkeyPatch, settings: ModelSettings
) -> None:
    """What vLLM takes for a platform then has no memory, and raises an error without a word."""
    from vllm.platforms.interface import UnspecifiedPlatform

    monkeypatch.setattr("vllm.platforms._current_platform", UnspecifiedPlatform())
    monkeypatch.setattr("engine.inference.engine_options.is_cpu_build", lambda: False)
    with pytest.raises(UserError, match=r"built for CUDA and sees no GPU; .*nvidia-smi"):
        chunk_tokens(settings=settings, folder=find_weights(settings))
