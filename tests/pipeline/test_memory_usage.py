"""How much of the machine's memory is in use: by hand, and on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

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
        patch.setattr(back_pressure, "_MEMINFO", meminfo)
        assert back_pressure.memory_usage() == 0.25
    assert 0 < back_pressure.memory_usage() < 1
