"""What can be said of a run on a cluster without importing any of it."""

from pathlib import Path

import yaml

from engine.documents import read_yaml
from engine.store import is_run

ISLANDS = "islands"
"""Folder of a run that holds its islands' runs."""


def island_folder(folder: Path, number: int) -> Path:
    """Return the folder of an island's run, in that of the whole run."""
    return folder / ISLANDS / f"{folder.name}.{number}"


def is_on_cluster(folder: Path) -> bool:
    """Whether a folder is a run whose islands have runs of their own, or were to get them.

    An island's own run has the settings of the whole one, but events too.
    """
    return (folder / ISLANDS).is_dir() or (not is_run(folder) and _names_cluster(folder))


def is_island(folder: Path) -> bool:
    """Whether a folder is such a run of an island, which goes on wherever its driver has it."""
    folder = folder.resolve()
    name, _, number = folder.name.rpartition(".")
    is_there = folder.parent.name == ISLANDS and folder.parent.parent.name == name
    return is_there and number.isdecimal()


def _names_cluster(folder: Path) -> bool:
    """Whether the settings in a folder say so, whatever version wrote them."""
    try:
        values = read_yaml((folder / "config.yaml").read_text(encoding="utf-8"))
        return bool(values["cluster"]["kind"] != "none")
    except (OSError, ValueError, LookupError, TypeError, yaml.YAMLError):
        return False
