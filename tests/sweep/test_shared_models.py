"""The model that the runs of a sweep's process share: loaded once for each number format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import engine.sweep.__main__ as sweep_process
from engine import config
from engine.settings import Dtype, RunSettings
from engine.store import Session, create_run
from engine.sweep import plan, shared

Load = Callable[[], object]


class Loading:
    """Stands in for `Run`: loads its model, and no more."""

    @classmethod
    @contextmanager
    def start(cls, settings: RunSettings, *, load: Load, stored_as: str) -> Iterator[None]:
        load()
        yield

    @classmethod
    @contextmanager
    def resume(cls, folder: Path, *, load: Load) -> Iterator[None]:
        load()
        yield


class Loaded:
    """Stands in for a model."""

    def forget(self) -> None:
        pass

    def close(self) -> None:
        pass


def test_a_run_of_a_sweep_goes_on_in_the_number_format_that_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This machine would take another one, as it does for the runs that begin here."""
    formats: list[str] = []

    @contextmanager
    def loader(settings: RunSettings, *, syntax: object) -> Iterator[Callable[[], Loaded]]:
        formats.append(settled(settings).model.dtype)
        yield Loaded

    def settled(settings: RunSettings) -> RunSettings:
        return in_format("bfloat16", settings) if settings.model.dtype == "auto" else settings

    def in_format(dtype: Dtype, settings: RunSettings) -> RunSettings:
        return replace(settings, model=replace(settings.model, dtype=dtype))

    monkeypatch.setattr(sweep_process, "Run", Loading)
    monkeypatch.setattr(sweep_process, "evolve", lambda run, *, place: 0)
    monkeypatch.setattr(shared, "model_loader", loader)
    monkeypatch.setattr(shared, "settled", settled)
    sweep = plan(["problem=signal", f"runs={tmp_path}", "name=sweep", "seed=0,1,2"])
    begun = sweep.runs[0]
    create_run(
        begun.folder,
        write_config=lambda path: config.save(in_format("float32", begun.settings), path),
        events=[Session(number=0, engine="0", fingerprint="f")],
    )
    with closing(shared.SharedModel()) as model:
        for each in sweep.runs:
            assert sweep_process.run_one(sweep, each, model) == 0
    assert formats == ["float32", "bfloat16"]  # the last two share theirs
