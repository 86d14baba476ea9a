"""Every benchmark that runs a language model takes ``model=``: a preset, a folder or a hub id."""

import importlib
import os
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest

from bench import gpu, learning, peers, restart
from bench.experiments.table import narrowed, read_table
from bench.options import model_arguments
from engine import config
from engine.core import UserError
from engine.settings import ModelSettings

BENCH = Path(__file__).parents[2] / "bench"
LOADING = (
    "adapters",
    "cache",
    "decode",
    "examples",
    "fanout",
    "fill_model",
    "layouts",
    "operators",
    "pipeline",
    "throughput",
)
"""Those whose ``main`` looks for the weights itself."""
OTHERS = ("gpu", "gpu_model", "learning", "peers", "restart")
MODELS = ("qwen3_coder_30b", "somewhere/with-weights", "/some/folder")


class AskedError(Exception):
    """A benchmark looked for the weights of a model."""


def settings_of(model: str) -> ModelSettings:
    """Return the settings of a run with the model."""
    return config.resolve(model_arguments({"model": model})).model


def test_all_that_load_a_model_are_here() -> None:
    words = ("find_weights(", "model_loader(", "LanguageModel(", '"engine.run"')
    found = {path.stem for path in BENCH.glob("*.py") if any(w in path.read_text() for w in words)}
    # A stand-in's times, and no model; the number formats of the embedded one; evaluators alone.
    others = {"control_side", "cpu_format", "cpu_format_runs", "cpu_format_side", "outposts"}
    assert found - others <= {*LOADING, *OTHERS}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", LOADING)
def test_the_model_gets_to_the_engine(
    name: str, model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = importlib.import_module(f"bench.{name}")
    asked: list[ModelSettings] = []

    def find(settings: ModelSettings) -> Path:
        asked.append(settings)
        raise AskedError

    monkeypatch.setattr(module, "find_weights", find)
    monkeypatch.setattr(module, "prepare", lambda **_: None, raising=False)
    monkeypatch.setattr(module, "open_pool", lambda **_: nullcontext(), raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: None)
    out = [f"out={tmp_path / 'out'}"] if "out" in getattr(module, "DEFAULTS", {}) else []
    with pytest.raises(AskedError):
        module.main([f"model={model}", *out])
    wanted = settings_of(model)
    assert (asked[0].name, asked[0].path) == (wanted.name, wanted.path)


@pytest.mark.parametrize("name", [*LOADING, "gpu"])
def test_an_unknown_model_is_a_line(name: str) -> None:
    module = importlib.import_module(f"bench.{name}")
    with pytest.raises(UserError, match="nosuch") as refused:
        module.main(["model=nosuch"])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("model", MODELS)
def test_experiments_have_the_model(model: str, tmp_path: Path) -> None:
    wanted = settings_of(model)
    options = {**dict.fromkeys(("problems", "seeds", "amount", "cores"), ""), "model": model}
    experiment = narrowed(read_table()["methods"], {**options, "arms": "one-island,mutation"})
    by_arm = {job.arm: job.settings(tmp_path).model for job in experiment.jobs[:2]}
    assert (by_arm["one-island"].name, by_arm["one-island"].path) == (wanted.name, wanted.path)
    assert by_arm["mutation"].kind == "mutation"
    asked = {**learning.DEFAULTS, "model": model, "arms": "none,mutation"}
    for run in learning.jobs_of(asked):
        is_asked = set(model_arguments({"model": model})) <= set(run.command)
        assert is_asked is (run.arm == "none")
    made = gpu.read_bench([f"model={model}"], ExitStack()).settings.model
    assert (made.name, made.path) == (wanted.name, wanted.path)


@pytest.mark.parametrize("model", MODELS)
def test_runs_of_their_own_get_the_model(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[list[str]] = []

    def run(_: Path, *, arguments: list[str], **__: Any) -> None:
        given.append(arguments)
        raise AskedError

    monkeypatch.setattr(restart, "restart", run)
    with pytest.raises(AskedError):
        restart.main([f"model={model}"])
    assert set(model_arguments({"model": model})) <= set(given[0])
    case = peers.Case(
        **{"side": "rewrite", "seed": 0, "problem": "signal", "model": model, "threads": "1"},
        **{"settings": "", "seconds": 1.0, "max_model_len": 8192, "workers": 1},
    )
    assert set(model_arguments({"model": model})) <= set(peers._model_arguments(case))
