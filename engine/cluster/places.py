"""What can be said of a run on a cluster without importing any of it."""

from pathlib import Path

ISLANDS = "islands"
"""Folder of a run that holds its islands' runs."""


def island_folder(folder: Path, number: int) -> Path:
    """Return the folder of an island's run, in that of the whole run."""
    return folder / ISLANDS / f"{folder.name}.{number}"


def is_on_cluster(folder: Path) -> bool:
    """Whether a folder is a run whose islands have runs of their own."""
    return (folder / ISLANDS).is_dir()
