"""Files that go from machine to machine as values."""

from collections.abc import Mapping
from pathlib import Path

Files = Mapping[str, bytes]
"""Files below a folder, by their paths."""


def files_of(folder: Path) -> Files:
    """Return the small files below a run's folder: settings and addresses, but no databases."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.name in ("config.yaml", "run.url")
    }


def all_files(folder: Path, *, but: str | None = None) -> Files:
    """Return all files in a folder, but one of this name."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name != but}


def put_files(folder: Path, files: Files) -> None:
    """Write files below a folder, which is made."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
