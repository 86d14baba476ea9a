"""The zygote: a warm interpreter that forks one confined child for each process of a program.

``python -m engine.evaluation.zygote``, started by ``lane``. It leaves the network,
imports what candidates import, and gives itself to the native loop, which forks, watches and
kills. It is single-threaded, so that forking is safe; it never runs a candidate's code, and holds
no more than a candidate may know: the cases that all its processes are given, and nothing to
score them by.

A child may read the libraries that it can import, and next to nothing else: `readable_paths`.

Does not cover: what a forked child does (``program``), and how the kernel is made to see to what it
may read (``native/walls.cpp``).
"""

import dataclasses
import gc
import importlib.abc
import importlib.util
import json
import random
import site
import socket
import sys
import sysconfig
from collections.abc import Collection, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

import numpy as np

from engine.evaluation import _native
from engine.evaluation.program import run_child
from engine.evaluation.server import ServerSetup, die_first, give_way, read_setup
from engine.evaluation.wire import decode_cases, read_input

_OURS = ("engine", "evaluators", "kernels")
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/local/lib", "/usr/share/zoneinfo")
_FILES = (
    "/dev/null",
    "/dev/urandom",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/proc/cpuinfo",  # torch reads it before its first operation
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setup(ServerSetup):
    """What a zygote has to know of a problem: how to run a program, not how to score it.

    Attributes:
        entry_point: the function that programs define.
        inputs: for each stage, a descriptor for each process with the cases that it runs.
        results: descriptors of the memory for the results of the processes of a program.
        isolate_cases: whether each case has a process of its own.
        cpu_seconds: of its core, the most that a process may have.
        lazy: what a program's import only loads once the program asks for something in it.
        hidden: folders that a program may not read, even where they lie among the libraries.
    """

    entry_point: str
    inputs: list[list[int]]
    results: list[int]
    isolate_cases: bool
    cpu_seconds: int
    lazy: list[str]
    hidden: list[str]


def main() -> None:
    """Serve programs until the connection ends; in a forked child, run one instead."""
    setup = Setup(**read_setup())
    die_first()
    _native.gather_arenas()  # now: what is imported from here on stays for good
    refused = _native.enter_namespaces()  # now: a process with threads can't
    _native.die_with_parent(parent=setup.parent, signal=9)
    _native.adopt_orphans()
    warm_up(setup.modules, setup.lazy)
    # None where each case has a process of its own, which may find no other one in its memory.
    inherited = [
        None if setup.isolate_cases else decode_cases(read_input(inputs[0]))
        for inputs in setup.inputs
    ]
    _native.end_arenas()  # now: a child's memory limit is computed from what is mapped
    zygote = _native.Zygote(
        connection=setup.connection,
        inputs=setup.inputs,
        results=setup.results,
        seconds=setup.seconds,
        cpu_seconds=setup.cpu_seconds,
        memory_bytes=setup.memory_bytes,
        readable=readable_paths(hidden=setup.hidden),
    )
    if setup.idle:  # now, not before: warming up may not take for ever
        give_way()
    with socket.socket(fileno=setup.connection) as connection:
        begin(connection, missing=dict(zygote.missing_walls), refused=refused)
        connection.detach()
    forked = zygote.serve()
    if forked is not None:
        stage, program = forked
        cases = inherited[stage]
        del inherited  # the cases of other stages
        run_child(program, setup.entry_point, cases)


def begin(
    connection: socket.socket, *, missing: Mapping[str, str], refused: str, writes: str = ""
) -> None:
    """Seal the mounts and tell the lane which walls are missing; the process is ready then.

    Args:
        connection: to the lane.
        missing: why each of the other walls can't be put up, by name.
        refused: why the process has no namespaces of its own; empty if it has.
        writes: why the process writes outside of mounts of its own; empty if it does not.
    """
    walls = dict(missing)
    if refused:
        walls["network"] = refused
    # Now, not before: some libraries look for a temporary folder while they are imported.
    if unsealed := refused or writes or _native.seal_mounts():
        walls["mounts"] = unsealed
    connection.sendall(json.dumps(walls).encode() + b"\n")


def warm_up(modules: list[str], lazy: list[str]) -> None:
    """Do once what every candidate would otherwise pay for, then keep it out of the collector."""
    for name in modules:
        importlib.import_module(name)
    if "numba" in modules:
        _warm_compiler()
    sys.meta_path.insert(0, _LazyFinder(lazy))
    random.seed(0)  # every candidate starts from the same state, on every worker
    np.random.seed(0)
    gc.collect()
    gc.freeze()


class _LazyFinder(importlib.abc.MetaPathFinder):
    """Finds the modules of some names, to be loaded when something in them is asked for."""

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path) if fullname in self._names else None
        if spec is not None and spec.loader is not None:
            spec.loader = importlib.util.LazyLoader(spec.loader)
        return spec


def _warm_compiler() -> None:
    """Compile something, which loads the compiler's own tables."""
    import numba

    def total(values):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        result = 0.0
        for value in values:
            result += value
        return result

    numba.njit(total)(np.ones(2))


def readable_paths(*more: str, hidden: Collection[str] = ()) -> list[str]:
    """Return files and folders that cover all libraries and ``more``.

    They cover none of our packages, and of the ``hidden`` folders none that lies in a library.
    """
    libraries = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    libraries += [*_LIBRARIES, *site.getsitepackages(), *more]
    # A library folder may hold site-packages, and that this project.
    specs = filter(None, map(importlib.util.find_spec, _OURS))
    ours = [at for spec in specs for at in spec.submodule_search_locations or ()]
    without = {Path(each).resolve() for each in (*ours, *hidden)}
    found = {
        str(path) for each in libraries for path in paths_without(Path(each).resolve(), without)
    }
    return [*sorted(found), *_FILES]


def paths_without(path: Path, hidden: Collection[Path]) -> list[Path]:
    """Return paths that cover ``path``, but neither ``hidden`` nor a folder that holds one."""
    if path in hidden:
        return []
    if not any(each.is_relative_to(path) for each in hidden):
        return [path]
    return [part for child in path.iterdir() for part in paths_without(child, hidden)]


if __name__ == "__main__":
    main()
