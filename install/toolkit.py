"""A folder that looks like a CUDA toolkit, made of the compiler's packages in .venv.

vLLM's libraries compile kernels for the GPU when a model is loaded. They look for the compiler by
CUDA_HOME, for headers in its ``include`` and for libraries in its ``lib64``, under names without a
version. The packages have other names, so .venv/cuda links to what they have; the engine points
CUDA_HOME to it.
"""

import ctypes
import re
import shutil
from pathlib import Path

DRIVER = "libcuda.so.1"


def make_toolkit(venv: Path, *, driver: str = DRIVER) -> Path | None:
    """Make ``venv/cuda`` anew; None if the compiler's packages are not in the environment.

    Args:
        venv: the environment.
        driver: the driver's library, which kernels are linked with; left out where there is none.
    """
    toolkit = venv / "cuda"
    shutil.rmtree(toolkit, ignore_errors=True)
    packages = sorted(venv.glob("lib/python*/site-packages/nvidia/cu[0-9]*/bin/nvcc"))
    if not packages:
        return None
    source = packages[-1].parent.parent
    libraries = toolkit / "lib64"
    libraries.mkdir(parents=True)
    for name in ("bin", "include", "nvvm"):
        (toolkit / name).symlink_to(source / name)
    (toolkit / "lib").symlink_to("lib64")
    for path in sorted((source / "lib").iterdir()):
        (libraries / path.name).symlink_to(path)
        plain = re.sub(r"\.so\..*", ".so", path.name)
        if not (source / "lib" / plain).exists() and not (libraries / plain).exists():
            (libraries / plain).symlink_to(path)
    if (found := _loaded(driver)) is not None:
        (libraries / "libcuda.so").symlink_to(found)
    return toolkit


def _loaded(library: str) -> Path | None:
    """Return the file that the name of a library stands for on this machine."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return None
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = Path(line.split(maxsplit=5)[-1])
        if path.name == library or path.name.startswith(library.removesuffix(".1")):
            return path
    return None
