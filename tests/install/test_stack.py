"""Which packages are chosen, and for what reason."""

from pathlib import Path

import pytest

from install.checks import SetupError, check_disk, explain
from install.stack import choose_stack

HERE = "libc.so.6"  # a library that every machine has, in place of the driver's
NOWHERE = "libno-such-driver.so.1"


def test_no_gpu(tmp_path: Path) -> None:
    (tmp_path / "nvidiactl").touch()
    stack = choose_stack("", devices=tmp_path, driver=HERE)
    assert stack.name == "cpu"
    assert "no NVIDIA GPU" in stack.reason


@pytest.mark.parametrize("node", ["nvidia0", "nvidia7", "dxg"])
def test_gpu(tmp_path: Path, node: str) -> None:
    (tmp_path / node).touch()
    stack = choose_stack("", devices=tmp_path, driver=HERE)
    assert stack.name == "cuda"
    assert node in stack.reason


def test_gpu_without_driver(tmp_path: Path) -> None:
    (tmp_path / "nvidia0").touch()
    stack = choose_stack("", devices=tmp_path, driver=NOWHERE)
    assert stack.name == "cpu"
    assert NOWHERE in stack.reason


@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_what_is_asked_for_wins(tmp_path: Path, name: str) -> None:
    (tmp_path / "nvidia0").touch()
    stack = choose_stack(name, devices=tmp_path, driver=HERE)
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
