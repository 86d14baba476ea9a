"""How much of the machine's memory is in use: by hand, and on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import memory
from engine.pipeline import back_pressure


def test_it_is_what_the_kernel_does_not_call_available(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(
        "MemTotal:       16000 kB\nMemFree:          100 kB\nMemAvailable:    12000 kB\n"
        "HugePages_Total:       0\n"
    )
    with monkeypatch.context() as patch:
        patch.setattr(memory, "MEMINFO", meminfo)
        patch.setattr(memory, "CGROUP", tmp_path)
        assert back_pressure.memory_usage() == 0.25
        # A container of 8,000 KiB uses 5,000, of which 1,000 is idle cache.
        for name, text in (
            ("memory.max", f"{8000 * 1024}\n"),
            ("memory.current", f"{5000 * 1024}\n"),
            ("memory.stat", f"anon 1\ninactive_file {1000 * 1024}\n"),
        ):
            (tmp_path / name).write_text(text)
        assert back_pressure.memory_usage() == 0.5
        (tmp_path / "memory.max").write_text("max\n")
        assert back_pressure.memory_usage() == 0.25
    assert 0 < back_pressure.memory_usage() < 1
