"""Folders with a lock: in use while a process holds them, and stale after it, however it died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.scratch import make_scratch, remove_stale

HOLDER = """
import sys, time
from pathlib import Path
from engine.scratch import make_scratch
make_scratch(Path(sys.argv[1]), "mine-held")
print("held", flush=True)
time.sleep(1000)
"""


def test_a_folder_is_stale_once_its_holder_was_killed(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    with holder:
        try:
            assert holder.stdout.readline() == "held\n"
            assert remove_stale(tmp_path, "mine-") == []
            assert (tmp_path / "mine-held").is_dir()
        finally:
            holder.send_signal(signal.SIGKILL)
    assert remove_stale(tmp_path, "mine-") == ["mine-held"]
    assert list(tmp_path.iterdir()) == []


def test_it_is_in_use_until_its_descriptor_is_closed(tmp_path: Path) -> None:
    folder, lock = make_scratch(tmp_path, "mine-1")
    (folder / "file").write_text("in use")
    other, other_lock = make_scratch(tmp_path, "other-1")
    os.close(other_lock)
    assert remove_stale(tmp_path, "mine-") == []
    os.close(lock)
    assert remove_stale(tmp_path, "mine-") == ["mine-1"]
    assert list(tmp_path.iterdir()) == [other]


def test_a_folder_that_never_got_its_lock_is_removed_once_it_is_old(tmp_path: Path) -> None:
    for name, age in (("new-mine-old", 3600), ("new-mine-young", 0)):
        (tmp_path / name).mkdir()
        changed = (tmp_path / name).stat().st_mtime - age
        os.utime(tmp_path / name, (changed, changed))
    assert remove_stale(tmp_path, "mine-") == []
    assert [path.name for path in tmp_path.iterdir()] == ["new-mine-young"]


def test_what_is_no_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "mine-link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "mine-file").write_text("a file")
    assert remove_stale(tmp_path, "mine-") == []
    assert len(list(tmp_path.iterdir())) == 3


def test_a_name_that_is_taken_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "mine-1").mkdir()
    (tmp_path / "mine-1" / "file").touch()
    with pytest.raises(OSError, match="mine-1"):
        make_scratch(tmp_path, "mine-1")
