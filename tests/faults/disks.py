"""Small disks, and disks that nobody may write, mounted for a test; only root can do that."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

KIB = 1024


def _mount(*arguments: str) -> None:
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small disk")
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")


@contextmanager
def small_disk(at: Path, *, kib: int) -> Iterator[Path]:
    """Hold an empty disk of so many KiB, in memory, at a folder that is made."""
    at.mkdir()
    _mount("-t", "tmpfs", "-o", f"size={kib}k", "none", str(at))
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)


def enlarge(disk: Path, *, kib: int) -> None:
    """Give a small disk another size."""
    _mount("-o", f"remount,size={kib}k", str(disk))


def fill(disk: Path, *, leave: int = 0) -> Path:
    """Write a file that leaves so many bytes of a disk; return it."""
    path, found = disk / "filler", os.statvfs(disk)
    room = found.f_bavail * found.f_frsize - leave
    path.write_bytes(bytes(max(0, room)))
    return path


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    """Have a folder and all below it be read-only for the length of a ``with`` block."""
    _mount("--bind", str(folder), str(folder))
    try:
        _mount("-o", "remount,bind,ro", str(folder))
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
