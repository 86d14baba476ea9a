"""The GPU's NUMA node, on machines that are described in a folder like the root."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.inference import gpu_node


def card(root: Path, minor: int, node: int, *, ours: bool = True) -> None:
    """Describe a GPU; its address follows its minor number backwards, as nothing promises."""
    address = f"0000:{9 - minor}A:00.0"
    information = root / "proc/driver/nvidia/gpus" / address / "information"
    information.parent.mkdir(parents=True)
    information.write_text(f"Model: \t NVIDIA H100\nDevice Minor: \t {minor}\n")
    device = root / "sys/bus/pci/devices" / address.lower()
    device.mkdir(parents=True)
    (device / "numa_node").write_text(f"{node}\n")
    (root / "dev").mkdir(exist_ok=True)
    if ours:
        (root / f"dev/nvidia{minor}").touch()


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_no_gpu_has_no_node(tmp_path: Path) -> None:
    assert gpu_node(root=tmp_path) is None


def test_a_gpu_has_its_node(tmp_path: Path) -> None:
    card(tmp_path, 0, 1)
    assert gpu_node(root=tmp_path) == 1


def test_a_machine_without_nodes_says_so(tmp_path: Path) -> None:
    card(tmp_path, 0, -1)
    assert gpu_node(root=tmp_path) is None


def test_gpus_of_other_containers_do_not_count(tmp_path: Path) -> None:
    for minor in range(4):
        card(tmp_path, minor, minor // 2, ours=minor == 1)
    assert gpu_node(root=tmp_path) == 0


@pytest.mark.parametrize(
    ("chosen", "node"), [("", 1), ("0", 1), ("2,3", 0), ("9", None), ("GPU-1234", None)]
)
def test_the_first_gpu_that_is_chosen_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str, node: int | None
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    for minor in range(4):
        card(tmp_path, minor, minor // 2)
    assert gpu_node(root=tmp_path) == node
