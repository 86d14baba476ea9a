"""The machine: cores, memory, GPU, limits of the process and of its container, disks."""

import os
import platform
import resource
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import engine
from engine.checking.finding import Finding, doubtful, good, wrong
from engine.core import UserError
from engine.evaluation.descriptors import LEAST, WANTED, allowed_descriptors
from engine.inference import is_cpu_build
from engine.memory import CGROUP, available_bytes, total_bytes
from engine.paths import expanded
from engine.settings import RunSettings

_GIB = 2**30
_FEWEST_PROCESSES = 64  # threads count; OpenMP, evaluators and syntax workers have dozens
_LEAST_DISK = _GIB // 8
_LITTLE_DISK = 2 * _GIB


def machine() -> Iterator[Finding]:
    """Yield what the machine is."""
    usable, every = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    quota = _quota()
    cores = f"{usable} of {every} cores"
    if quota is not None and quota < usable:
        cores += f", of whose time a container's limit leaves {quota:.1f}"
    python = f"Python {platform.python_version()}, Linux {platform.release()}"
    yield good("machine", f"Brood {engine.__version__}, {python}, {platform.machine()}")
    if usable < 2:
        yield doubtful(
            "cores", cores, where="", remedy="model and evaluators share it; two are faster"
        )
    else:
        yield good("cores", cores)
    yield good("memory", f"{available_bytes() / _GIB:.1f} GiB free of {total_bytes() / _GIB:.1f}")
    gpus = [*Path("/proc/driver/nvidia/gpus").glob("*/information")]
    if gpus:
        yield good("gpu", f"{len(gpus)} of NVIDIA's")
    elif is_cpu_build():
        yield good("gpu", "none: the model runs on the CPU")
    else:
        remedy = "see nvidia-smi, and give a container the GPU; or install brood[cpu]"
        yield doubtful("gpu", "none, and vLLM is built for CUDA", where="", remedy=remedy)


def limits() -> Iterator[Finding]:
    """Yield what the process may open and start."""
    descriptors = allowed_descriptors()
    said = f"{descriptors:,} open files"
    if descriptors < LEAST:
        yield wrong("limits", said, where="", remedy="raise them: ulimit -n 4096")
    elif descriptors < WANTED:
        yield doubtful("limits", said, where="", remedy="many evaluators want more: ulimit -n 4096")
    else:
        yield good("limits", said)
    processes = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    within = _read_number(CGROUP / "pids.max")
    left = min((each for each in (processes, within) if each >= 0), default=-1)
    said = f"{_number(left)} processes and threads"
    if 0 <= left < _FEWEST_PROCESSES:
        yield wrong("limits", said, where="", remedy="raise them: ulimit -u, or the container's")
    else:
        yield good("limits", said)


def disks(settings: RunSettings) -> Iterator[Finding]:
    """Yield whether there is room for runs and for temporary files."""
    try:
        runs = expanded(Path(settings.runs), what="runs").absolute()
        yield disk("runs", runs, remedy="set runs=FOLDER")
    except UserError as error:
        yield wrong("disk", str(error), where="", remedy="")
    yield disk("temporary", Path(tempfile.gettempdir()), remedy="set TMPDIR")


def disk(name: str, folder: Path, *, remedy: str, wanted: int = _LITTLE_DISK) -> Finding:
    """Return whether a folder, or the nearest one above it, can be written and has room.

    Args:
        name: what it is for.
        folder: need not exist.
        remedy: what to do if it does not do.
        wanted: bytes below which it is doubtful.
    """
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return wrong("disk", f"{name}: {there} can't be written", where="", remedy=remedy)
    free = shutil.disk_usage(there).free
    said = f"{name}: {free / _GIB:.1f} GiB free in {there}"
    if free < _LEAST_DISK:
        return wrong("disk", said, where="", remedy=f"make room, or {remedy}")
    if free < wanted:
        return doubtful("disk", said, where="", remedy=f"a long run may fill it: {remedy}")
    return good("disk", said)


def _read_number(path: Path) -> int:
    """Return the number in a file; -1 where there is none, which is no limit."""
    try:
        text = path.read_text().strip()
    except OSError:
        return -1
    return int(text) if text.isdecimal() else -1


def _quota() -> float | None:
    """Return how many cores' time the container may use; None for no limit."""
    try:
        quota, period = (CGROUP / "cpu.max").read_text().split()
    except (OSError, ValueError):
        return None
    return int(quota) / int(period) if quota.isdecimal() else None


def _number(count: int) -> str:
    return "any number of" if count < 0 else f"{count:,}"
