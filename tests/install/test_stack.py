"""Which packages are chosen, and for what reason."""

import subprocess
from pathlib import Path

import pytest

from install.checks import SetupError, check_disk, explain
from install.stack import LEAST_CUDA, choose_stack, cuda_version

NOWHERE = "libno-such-driver.so.1"


def driver(folder: Path, body: str) -> str:
    """Compile a driver's library that answers as ``body`` does."""
    source, library = folder / "driver.c", folder / "libdriver.so.1"
    source.write_text(f"int cuDriverGetVersion(int *version) {{ {body} }}\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    return str(library)


@pytest.fixture
def recent(tmp_path_factory: pytest.TempPathFactory) -> str:
    return driver(tmp_path_factory.mktemp("driver"), f"*version = {LEAST_CUDA}; return 0;")


def test_no_gpu(tmp_path: Path, recent: str) -> None:
    (tmp_path / "nvidiactl").touch()
    stack = choose_stack("", devices=tmp_path, driver=recent)
    assert stack.name == "cpu"
    assert "no NVIDIA GPU" in stack.reason


@pytest.mark.parametrize("node", ["nvidia0", "nvidia7", "dxg"])
def test_gpu(tmp_path: Path, recent: str, node: str) -> None:
    (tmp_path / node).touch()
    stack = choose_stack("", devices=tmp_path, driver=recent)
    assert stack.name == "cuda"
    assert node in stack.reason


def test_gpu_without_driver(tmp_path: Path) -> None:
    (tmp_path / "nvidia0").touch()
    stack = choose_stack("", devices=tmp_path, driver=NOWHERE)
    assert stack.name == "cpu"
    assert NOWHERE in stack.reason


@pytest.mark.parametrize(
    ("body", "version", "words"),
    [
        ("*version = 12080; return 0;", 12080, "a driver for CUDA 12.8 and the packages need 13.0"),
        ("*version = 13000; return 3;", 0, "update the driver to 580 or newer"),
    ],
)
def test_a_driver_that_is_too_old_is_named_with_the_one_to_get(
    tmp_path: Path, body: str, version: int, words: str
) -> None:
    (tmp_path / "nvidia0").touch()
    library = driver(tmp_path, body)
    assert cuda_version(library) == version
    stack = choose_stack("", devices=tmp_path, driver=library)
    assert stack.name == "cpu"
    assert words in stack.reason
    assert "STACK=cuda overrides" in stack.reason


def test_a_library_that_is_no_drivers_is_too_old() -> None:
    assert cuda_version("libc.so.6") == 0


@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_what_is_asked_for_wins(tmp_path: Path, name: str) -> None:
    (tmp_path / "nvidia0").touch()
    stack = choose_stack(name, devices=tmp_path, driver=NOWHERE)
    assert (stack.name, stack.reason) == (name, f"STACK={name}")


def test_unknown_stack() -> None:
    with pytest.raises(SetupError, match="STACK=rocm is unknown"):
        choose_stack("rocm")


def test_disk_too_small(tmp_path: Path) -> None:
    check_disk(tmp_path, "the packages", 0)
    with pytest.raises(SetupError, match=r"GB free and the packages need 1000000 GB"):
        check_disk(tmp_path, "the packages", 1_000_000)


def test_failure_without_a_full_disk(tmp_path: Path) -> None:
    assert str(explain(tmp_path, "what happened")) == "what happened"
