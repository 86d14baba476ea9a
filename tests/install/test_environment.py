"""When an environment is out of date."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from install import environment


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one module."""
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "parents.py").write_text("x = 1\n")
    (tmp_path / "native").mkdir()
    (tmp_path / "native" / "a.cpp").write_text("int a;\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    return tmp_path


def test_a_module_that_moves_is_installed_again(root: Path) -> None:
    before = environment.digest_project()
    (root / "engine" / "parents.py").write_text("x = 2\n")
    assert environment.digest_project() == before  # it is read where it lies
    (root / "engine" / "parents").mkdir()
    (root / "engine" / "parents.py").rename(root / "engine" / "parents" / "__init__.py")
    assert environment.digest_project() != before


@pytest.mark.parametrize("file", ["native/a.cpp", "pyproject.toml"])
def test_what_is_compiled_is_compiled_again(root: Path, file: str) -> None:
    before = environment.digest_project()
    (root / file).write_text("changed")
    assert environment.digest_project() != before


def test_all_installed_packages_are_looked_at() -> None:
    declared = tomllib.loads((environment.ROOT / "pyproject.toml").read_text())
    assert list(environment.PACKAGES) == sorted(
        declared["tool"]["scikit-build"]["wheel"]["packages"]
    )
