"""Which packages this machine needs: those for a CPU or those for an NVIDIA GPU.

It does not ask what the GPU can do, nor whether a model fits into it.
"""

import ctypes
from dataclasses import dataclass
from pathlib import Path

from install.checks import SetupError

LEAST_CUDA = 13000
"""The oldest CUDA that the locked torch runs on, as the driver counts: 1000 major + 10 minor."""
LEAST_DRIVER = 580
"""The oldest driver with it."""


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A set of packages with its own lock file, and why it was chosen."""

    name: str
    reason: str

    @property
    def needed_gb(self) -> int:
        """Free disk space for a first install, in 10^9 bytes: packages, byte code and slack."""
        return {"cpu": 4, "cuda": 12}[self.name]


def choose_stack(
    asked: str, *, devices: Path = Path("/dev"), driver: str = "libcuda.so.1"
) -> Stack:
    """Take the stack that was asked for, or the one that fits this machine if `asked` is empty.

    A GPU counts as present when its device node and the driver's library both are, and the driver
    is new enough for the packages. Neither /proc/driver/nvidia (a container sees the host's) nor
    nvidia-smi (it may wake the GPU, which takes seconds, at every start) tells more.

    Raises:
        SetupError: `asked` is neither empty nor the name of a stack.
    """
    if asked in ("cpu", "cuda"):
        return Stack(name=asked, reason=f"STACK={asked}")
    if asked:
        raise SetupError(f"STACK={asked} is unknown: use STACK=cpu or STACK=cuda, or leave it out.")
    nodes = [*sorted(devices.glob("nvidia[0-9]*")), *devices.glob("dxg")]
    if not nodes:
        return Stack(name="cpu", reason="no NVIDIA GPU found; STACK=cuda overrides")
    try:
        version = cuda_version(driver)
    except OSError:
        reason = f"{nodes[0]} is there but its driver library {driver} is not; STACK=cuda overrides"
        return Stack(name="cpu", reason=reason)
    if version < LEAST_CUDA:
        can, needs = (f"{each // 1000}.{each % 1000 // 10}" for each in (version, LEAST_CUDA))
        reason = (
            f"{nodes[0]} has a driver for CUDA {can} and the packages need {needs}: update the "
            f"driver to {LEAST_DRIVER} or newer; STACK=cuda overrides"
        )
        return Stack(name="cpu", reason=reason)
    return Stack(name="cuda", reason=f"NVIDIA GPU found at {nodes[0]}; STACK=cpu overrides")


def cuda_version(driver: str) -> int:
    """Return the newest CUDA that a driver's library can do; 0 if it does not say.

    Asking neither starts the driver nor wakes the GPU.

    Raises:
        OSError: there is no such library.
    """
    ask = getattr(ctypes.CDLL(driver), "cuDriverGetVersion", None)
    version = ctypes.c_int(0)
    if ask is None or ask(ctypes.byref(version)):
        return 0
    return version.value
