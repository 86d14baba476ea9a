"""Looking at a folder that somebody made hard to look at, and emptying it."""

import os
from pathlib import Path

from engine.evaluation.watched import clear, is_larger

MEBIBYTE = 1 << 20
DEEP, NAME = 1100, "x" * 9
"""Levels of folders; more than a path or Python's stack can have."""


def make_deep(folder: Path) -> None:
    before = Path.cwd()
    os.chdir(folder)
    for _ in range(DEEP):
        Path(NAME).mkdir()
        os.chdir(NAME)
    Path("file").touch()
    os.chdir(before)


def test_files_count_by_their_blocks_and_their_number(tmp_path: Path) -> None:
    assert not is_larger(tmp_path, 0)
    (tmp_path / "one").write_bytes(b"x" * 100_000)
    assert is_larger(tmp_path, 90_000) and not is_larger(tmp_path, 200_000)
    for number in range(100):
        (tmp_path / str(number)).touch()
    assert is_larger(tmp_path, 400_000)


def test_a_hole_counts_nothing(tmp_path: Path) -> None:
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(1 << 40)
    assert not is_larger(tmp_path, MEBIBYTE)


def test_what_a_link_leads_to_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/")
    assert not is_larger(tmp_path, MEBIBYTE)


def test_what_can_not_be_looked_at_is_too_large(tmp_path: Path) -> None:
    make_deep(tmp_path)
    assert is_larger(tmp_path, 1 << 40)
    clear(tmp_path)


def test_everything_is_cleared_and_nothing_else(tmp_path: Path) -> None:
    kept, folder = tmp_path / "kept", tmp_path / "scratch"
    kept.mkdir()
    (kept / "file").touch()
    clear(folder)  # which makes it
    make_deep(folder)
    (folder / "link").symlink_to(kept)
    (folder / "closed" / "inner").mkdir(parents=True)
    (folder / "closed" / "inner" / "file").touch()
    (folder / "closed" / "inner").chmod(0)
    (folder / "closed").chmod(0)
    os.mkfifo(folder / "pipe")
    folder.chmod(0)
    clear(folder)
    assert list(folder.iterdir()) == [] and (kept / "file").exists()
