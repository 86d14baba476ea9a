"""What can be said of a run on a cluster without importing any of it."""

from importlib.util import find_spec
from pathlib import Path

from engine.core import UserError

ISLANDS = "islands"
"""Folder of a run that holds its islands' runs."""


def island_folder(folder: Path, number: int) -> Path:
    """Return the folder of an island's run, in that of the whole run."""
    return folder / ISLANDS / f"{folder.name}.{number}"


def is_on_cluster(folder: Path) -> bool:
    """Whether a folder is a run whose islands have runs of their own."""
    return (folder / ISLANDS).is_dir()


def check_ray() -> None:
    """Check that Ray is installed.

    Raises:
        UserError: it is not.
    """
    if find_spec("ray") is None:
        raise UserError("cluster=ray needs Ray; install brood with its extra: brood[cluster]")
