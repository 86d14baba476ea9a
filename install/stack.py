"""Which packages this machine needs: those for a CPU or those for an NVIDIA GPU.

It does not ask what the GPU can do, nor whether a model fits into it.
"""

import ctypes
from dataclasses import dataclass
from pathlib import Path

from install.checks import SetupError


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

    A GPU counts as present when its device node and the driver's library both are. Neither
    /proc/driver/nvidia (a container sees the host's) nor nvidia-smi (it may wake the GPU, which
    takes seconds, at every start) tells more.

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
        ctypes.CDLL(driver)
    except OSError:
        reason = f"{nodes[0]} is there but its driver library {driver} is not; STACK=cuda overrides"
        return Stack(name="cpu", reason=reason)
    return Stack(name="cuda", reason=f"NVIDIA GPU found at {nodes[0]}; STACK=cpu overrides")
