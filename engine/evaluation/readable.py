"""What a candidate may read: the libraries it can import, and next to nothing else.

Does not cover: how the kernel is made to see to it (``native/walls.cpp``).
"""

from __future__ import annotations

import importlib.util
import site
import sysconfig
from collections.abc import Collection, Sequence
from pathlib import Path

_OURS = ("engine", "evaluators", "kernels")
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/local/lib", "/usr/share/zoneinfo")
_FILES = (
    "/dev/null",
    "/dev/urandom",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/proc/cpuinfo",  # torch reads it before its first operation
)


def readable_paths() -> list[str]:
    """Return the files and folders that cover all libraries, but not this project's packages."""
    libraries = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    libraries += [*_LIBRARIES, *site.getsitepackages()]
    # A library folder may hold site-packages, and that this project.
    ours = {Path(folder).resolve() for name in _OURS for folder in _folders(name)}
    found = {str(path) for each in libraries for path in paths_without(Path(each).resolve(), ours)}
    return [*sorted(found), *_FILES]


def paths_without(path: Path, hidden: Collection[Path]) -> list[Path]:
    """Return paths that cover ``path``, but neither ``hidden`` nor a folder that holds one."""
    if path in hidden:
        return []
    if not any(each.is_relative_to(path) for each in hidden):
        return [path]
    return [part for child in path.iterdir() for part in paths_without(child, hidden)]


def _folders(package: str) -> Sequence[str]:
    spec = importlib.util.find_spec(package)
    return spec.submodule_search_locations or () if spec else ()
