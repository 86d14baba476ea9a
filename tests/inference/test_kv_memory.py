"""The memory tier of a server beside a GPU: what there is room for, and time to pin it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from engine import memory
from engine.inference import kv_server as held
from engine.inference.kv_server import start_seconds
from engine.settings import CacheSettings


@pytest.mark.parametrize(("available_gb", "expected_gb"), [(16, 8.0), (400, 64.0), (0, 0.05)])
def test_a_tier_takes_no_more_than_half_of_what_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, available_gb: int, expected_gb: float
) -> None:
    meminfo, asked = tmp_path / "meminfo", []
    meminfo.write_text(f"MemTotal: 1 kB\nMemAvailable: {available_gb << 20} kB\n")
    monkeypatch.setattr(memory, "MEMINFO", meminfo)
    monkeypatch.setattr(memory, "CGROUP", tmp_path)

    def refuse(command: list[str], **_: Any) -> None:
        asked.append(json.loads(command[-1]))
        raise OSError("no processes here")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    settings = CacheSettings(
        kind="lmcache", memory_gb=64, disk_gb=1, folder=str(tmp_path / "kv"), server=None
    )
    with held(settings, chunk_tokens=256, on_gpu=True) as server:
        assert server is None
    assert [each["memory_gb"] for each in asked] == [expected_gb]
    assert list((tmp_path / "kv").iterdir()) == []


def test_a_larger_tier_has_longer_to_start() -> None:
    pinned_in_a_second = 1.0  # GiB, on a slow machine
    for memory_gb in (1.0, 64.0, 512.0):
        assert start_seconds(memory_gb) >= 60 + memory_gb / pinned_in_a_second
