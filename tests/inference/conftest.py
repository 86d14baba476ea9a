"""The embedded model, loaded once for all tests of this folder that only ask it."""

from __future__ import annotations

from collections.abc import Iterator

import numba  # before the engine: without a repair, vLLM can't start after it
import pytest

from engine import config
from engine.inference import LanguageModel, find_weights, prepare
from engine.settings import ModelSettings


@pytest.fixture(scope="package")
def settings() -> ModelSettings:
    assert numba.__version__
    return config.resolve(["model=smollm2", "model.max_model_len=1024"]).model


@pytest.fixture(scope="package")
def model(settings: ModelSettings) -> Iterator[LanguageModel]:
    prepare(threads=settings.threads, kv_cache_gb=settings.kv_cache_gb)
    model = LanguageModel(settings=settings, folder=find_weights(settings), seed=0)
    yield model
    model.close()


@pytest.fixture
def endless(model: LanguageModel) -> tuple[int, ...]:
    """The token that ends an answer; banning it makes a child run to its length."""
    return tuple(model.encode("<|im_end|>") + model.encode("<|endoftext|>"))
