"""A run's number format: given or measured, it stands in its settings, and a resume keeps it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from command import assert_complete, read_events, run

from engine import Run, config, parts
from engine.core import UserError
from engine.settings import Dtype, ModelSettings


def test_a_run_in_float32_is_one_from_end_to_end(tmp_path: Path) -> None:
    done = run(
        *("problem=signal", "model.dtype=float32", "search.k=2", "budget.candidates=4"),
        *(f"runs={tmp_path}", "name=whole"),
        scratch=tmp_path / "scratch",
    )
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "whole"
    assert_complete(folder, candidates=4)
    assert yaml.safe_load((folder / "config.yaml").read_text())["model"]["dtype"] == "float32"
    assert "the model computes in" not in done.stderr  # nothing was chosen
    assert len(read_events(folder)["child"]) >= 4


class Loaded(UserError):
    """Ends a run at the place where its model would be loaded."""


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[ModelSettings]:
    """The settings of the models that would be loaded."""
    seen: list[ModelSettings] = []

    def load(*, settings: ModelSettings, **_: object) -> None:
        seen.append(settings)
        raise Loaded

    monkeypatch.setattr(parts, "LanguageModel", load)
    return seen


def choose(monkeypatch: pytest.MonkeyPatch, dtype: Dtype) -> None:
    """Have this machine choose a format from now on."""

    def chosen(settings: ModelSettings, *, folder: Path) -> ModelSettings:
        assert folder.is_dir()
        return replace(settings, dtype=dtype) if settings.dtype == "auto" else settings

    monkeypatch.setattr(parts, "in_its_format", chosen)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_a_run_goes_on_in_the_format_that_it_began_with(
    dtype: Dtype,
    recorded_run: Path,
    loaded: list[ModelSettings],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    choose(monkeypatch, dtype)
    settings = config.resolve(["problem=signal", "budget.candidates=4"])
    assert settings.model.dtype == "auto"
    config.save(parts.settled(settings), recorded_run / "config.yaml")
    choose(monkeypatch, "float32" if dtype == "bfloat16" else "bfloat16")
    with Run.resume(recorded_run) as run, pytest.raises(Loaded):
        run.evolve()
    (model,) = loaded
    assert model.dtype == run.settings.model.dtype == dtype


def test_a_run_without_a_language_model_has_no_format() -> None:
    settings = config.resolve(["model=mutation"])
    assert parts.settled(settings) == settings
