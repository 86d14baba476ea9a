"""A file is written whole, or it is what it was before; every failure is one message."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.core import UserError
from engine.durable import write_whole


def test_a_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    write_whole(path, "½\n")
    assert path.read_bytes() == "½\n".encode()
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "full"
    path.write_text("old")
    (tmp_path / ".full.partial").symlink_to("/dev/full")
    with pytest.raises(UserError, match="full can't be written: No space left on device"):
        write_whole(path, "text")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("file/x", "x can't be written: Not a directory"),
        ("missing/x", "x can't be written: No such file or directory"),
        ("folder", "folder can't be written: Is a directory"),
        ("x" * 300, "can't be written: File name too long"),
        ("/proc/x", "x can't be written: No such file or directory"),
    ],
)
def test_a_place_that_takes_no_file_is_named(tmp_path: Path, place: str, words: str) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match=words):
        write_whole(tmp_path / place, "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "old"
    assert list((tmp_path / "folder").iterdir()) == []


def test_a_name_may_be_as_long_as_the_file_system_takes(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    write_whole(path, "text")
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
