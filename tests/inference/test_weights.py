"""Where a model's weights are looked for, and what is said when they are not there."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from engine import config
from engine.core import UserError
from engine.inference import find_weights
from engine.inference.weights import identity
from engine.settings import ModelSettings


@pytest.fixture
def settings(tmp_path: Path) -> ModelSettings:
    return config.resolve([f"model.cache_dir={tmp_path / 'cache'}"]).model


def test_a_folder_with_a_model_is_used_where_it_lies(
    settings: ModelSettings, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert find_weights(replace(settings, path=str(tmp_path))) == tmp_path


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/no/such/folder", "'/no/such/folder' does not exist"),
        ("./nowhere", "'./nowhere' does not exist"),
        ("somewhere", "'somewhere' does not exist"),
        ("someone/some-model", "'someone/some-model' is not on this machine.*hf download someone/"),
        ("some one/some:model", "is not on this machine"),
    ],
)
def test_a_model_that_is_not_here_is_an_error_that_names_it(
    settings: ModelSettings, path: str, words: str
) -> None:
    with pytest.raises(UserError, match=words):
        find_weights(replace(settings, path=path))


def test_a_folder_without_a_model_is_an_error(settings: ModelSettings, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no config\.json"):
        find_weights(replace(settings, path=str(tmp_path)))


def test_a_cache_that_cannot_be_written_is_an_error(
    settings: ModelSettings, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"can't be written.*model\.cache_dir"):
        find_weights(replace(settings, cache_dir=str(tmp_path / "file" / "cache")))


def test_weights_of_hugging_faces_cache_are_the_same_on_all_machines(tmp_path: Path) -> None:
    def cached(machine: str, digest: str) -> str:
        snapshot, blobs = tmp_path / machine / "snapshots/main", tmp_path / machine / "blobs"
        for folder in (snapshot, blobs):
            folder.mkdir(parents=True)
        for name, blob in (("model.safetensors", digest), ("config.json", "c" * 40)):
            (blobs / blob).write_text("{}")
            os.utime(blobs / blob, (len(machine), len(machine)))
            (snapshot / name).symlink_to(f"../../blobs/{blob}")
        return identity(snapshot)

    assert cached("a", "0" * 64) == cached("other", "0" * 64)
    assert cached("third", "1" * 64) != identity(tmp_path / "a/snapshots/main")


def test_other_weights_count_by_their_times(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    weights = tmp_path / "model.safetensors"
    weights.write_text("weights")
    os.utime(weights, (1, 1))
    first = identity(tmp_path)
    os.utime(weights, (2, 2))
    assert identity(tmp_path) != first
