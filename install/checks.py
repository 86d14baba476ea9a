"""What must be there before anything is installed, and why a command has failed.

Which Python can be used is setup.sh's question.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

FULL_BYTES = 200_000_000  # a disk with less free space than this is taken to be full


class SetupError(Exception):
    """The environment can't be made; the text is one sentence that names the remedy."""


def check_tools() -> None:
    """Raise SetupError if this is no Linux or there is no C++ compiler."""
    if sys.platform != "linux":
        raise SetupError(f"Brood runs on Linux, and this is {sys.platform}.")
    asked = os.environ.get("CXX", "").split()[:1]  # CXX may hold arguments too
    compilers = asked or ["c++", "g++", "clang++"]
    if not any(shutil.which(compiler) for compiler in compilers):
        raise SetupError(
            f"no C++ compiler found (looked for {', '.join(compilers)}): install g++ (Debian, "
            "Ubuntu: apt install g++) and try again."
        )


def check_disk(folder: Path, what: str, needed_gb: int) -> None:
    """Raise SetupError if the disk of `folder` has less than `needed_gb` 10^9 bytes free."""
    free_gb = shutil.disk_usage(folder).free / 1e9
    if free_gb < needed_gb:
        raise SetupError(
            f"the disk of {folder} has {free_gb:.1f} GB free and {what} need {needed_gb} GB: free "
            "some space, or make .venv a link to a folder on a larger disk."
        )


def explain(root: Path, failure: str) -> SetupError:
    """The error to raise when a command has failed: a full disk if there is one, or `failure`."""
    for folder in (root, Path(tempfile.gettempdir()), Path(os.environ.get("HOME", "/"))):
        if folder.is_dir() and shutil.disk_usage(folder).free < FULL_BYTES:
            return SetupError(f"the disk of {folder} is full: free some space and try again.")
    return SetupError(failure)
